// What each instance of an MPI job is told about its part.
#include "master/mpi_part.h"

#include "engine/engine_harness.h"

namespace aimaster {
namespace {

// A launcher and `workers`, spread over `nodes`.
EngineHarness MpiJob(uint32_t workers, uint32_t nodes, uint32_t slots) {
  EngineHarness job(workers, nodes);
  job.spec.framework = Framework::kMpi;
  job.spec.roles = MpiRoles(workers);
  job.spec.mpi_slots = slots;
  return job;
}

v1::MpiPart PartOf(const EngineHarness& job, uint32_t instance) {
  return MakeMpiPart(job.job(), {.instance = InstanceIndex{instance},
                                 .node = job.job().instances[instance].node,
                                 .master_address = job.job().master_address,
                                 .master_port = job.job().master_port});
}

std::string HostsOf(const v1::MpiPart& part) {
  std::string text;
  for (const v1::MpiHost& host : part.launcher().hosts()) {
    text += host.address() + "=" + std::to_string(host.slots()) + (host.is_local() ? " here; " : "; ");
  }
  return text;
}

TEST(MpiPart, AnotherJobHasNone) {
  EngineHarness job(2);
  job.Run();
  EXPECT_EQ(PartOf(job, 0).part_case(), v1::MpiPart::PART_NOT_SET);
}

TEST(MpiPart, ALauncherAloneHasItsOwnHostOrLetsMpirunCount) {
  EngineHarness counted = MpiJob(0, 1, 4);
  counted.Run();
  EXPECT_EQ(HostsOf(PartOf(counted, 0)), "10.0.0.0=4 here; ");
  EngineHarness open = MpiJob(0, 1, 0);
  open.Run();
  EXPECT_TRUE(PartOf(open, 0).has_launcher());
  EXPECT_EQ(HostsOf(PartOf(open, 0)), "");
}

TEST(MpiPart, EachWorkersNodeIsAHost) {
  EngineHarness job = MpiJob(2, 3, 8);
  job.Run();
  EXPECT_EQ(HostsOf(PartOf(job, 0)), "10.0.0.1=8; 10.0.0.2=8; ");
  EXPECT_EQ(PartOf(job, 0).launcher().port(), 23456u);
  EXPECT_EQ(PartOf(job, 1).station().address(), "10.0.0.1");
  EXPECT_EQ(PartOf(job, 2).station().port(), 23456u);
}

TEST(MpiPart, AWorkerBesideTheLauncherHasNothingToWaitFor) {
  EngineHarness job = MpiJob(2, 2, 2);
  job.Run();
  EXPECT_EQ(HostsOf(PartOf(job, 0)), "10.0.0.0=2 here; 10.0.0.1=2; ");
  EXPECT_EQ(PartOf(job, 1).station().address(), "");
  EXPECT_EQ(PartOf(job, 2).station().address(), "10.0.0.1");
}

TEST(MpiPart, SeveralWorkersOfOneHostAreOneStation) {
  EngineHarness job = MpiJob(4, 2, 2);  // launcher, 0 and 1 on the first node, 2 and 3 on the second
  job.Run();
  EXPECT_EQ(HostsOf(PartOf(job, 0)), "10.0.0.0=4 here; 10.0.0.1=4; ");
  EXPECT_EQ(PartOf(job, 3).station().address(), "10.0.0.1");
  EXPECT_EQ(PartOf(job, 4).station().address(), "");
}

// OpenMPI's shared memory does not bear two hosts on one machine.
TEST(MpiPart, PretendedNodesAreOneHost) {
  EngineHarness job = MpiJob(4, 2, 2);
  job.Submit();
  for (uint32_t node = 0; node < 2; ++node) {
    job.Feed(NodeJoined{NodeIndex{node}, "node-" + std::to_string(node), "127.0.0.1"});
  }
  job.Run();
  EXPECT_EQ(HostsOf(PartOf(job, 0)), "127.0.0.1=8 here; ");
  for (uint32_t worker = 1; worker <= 4; ++worker) EXPECT_EQ(PartOf(job, worker).station().address(), "");
}

TEST(MpiPart, WhatMpirunsRanksMustNotInheritIsTakenOut) {
  EngineHarness job = MpiJob(0, 2, 4);
  job.spec.devices = {"0", "1", "2", "3"};
  job.Run();
  Environment environment =
      RankEnvironment(job.job(), PlacesOnNodes(job.job())[0],
                      {.instance = InstanceIndex{0}, .master_address = "10.0.0.0"}, 0, "/job/attempt");
  AdaptToMpi(job.spec, environment);
  EXPECT_FALSE(environment.contains("RANK"));
  EXPECT_FALSE(environment.contains("WORLD_SIZE"));
  EXPECT_EQ(environment["MASTER_ADDR"], "10.0.0.0");
  EXPECT_EQ(environment["TORCHELASTIC_RESTART_COUNT"], "0");
  EXPECT_EQ(environment["CUDA_VISIBLE_DEVICES"], "0,1,2,3");
}

// The workers of such a job only serve: the launcher's end is that of the job.
TEST(MpiPart, TheJobHasSucceededWhenItsLauncherHas) {
  EngineHarness job = MpiJob(2, 2, 2);
  job.Run();
  job.Feed(RankSucceeded{InstanceIndex{0}, job.AttemptOf(0), Rank{0}});
  job.Ended(0);
  EXPECT_EQ(job.job().phase, Phase::kStopping);
  for (uint32_t worker : {1u, 2u}) job.Ended(worker);
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded);
}

}  // namespace
}  // namespace aimaster
