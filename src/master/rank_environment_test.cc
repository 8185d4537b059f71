// What a rank finds in its environment.
#include "master/rank_environment.h"

#include "engine/engine_harness.h"

namespace aimaster {
namespace {

Environment Of(const EngineHarness& job, uint32_t instance, uint32_t local = 0) {
  const InstanceState& state = job.job().instances[instance];
  return RankEnvironment(job.job(), PlacesOnNodes(job.job())[instance],
                         {.instance = InstanceIndex{instance},
                          .attempt = state.attempt,
                          .node = state.node,
                          .round = job.job().round,
                          .restart_count = job.job().restarts,
                          .master_address = job.job().master_address,
                          .master_port = job.job().master_port},
                         local, "/job/attempt");
}

std::string Slice(const EngineHarness& job, uint32_t instance) { return Of(job, instance)["CUDA_VISIBLE_DEVICES"]; }

TEST(RankEnvironmentTest, LocalRanksCountOverTheInstancesOfANode) {
  EngineHarness job(8);
  job.Run();
  for (uint32_t i = 0; i < 8; ++i) {
    Environment environment = Of(job, i);
    EXPECT_EQ(environment["RANK"], std::to_string(i));
    EXPECT_EQ(environment["LOCAL_RANK"], std::to_string(i));
    EXPECT_EQ(environment["LOCAL_WORLD_SIZE"], "8");
    EXPECT_EQ(environment["WORLD_SIZE"], "8");
    EXPECT_EQ(environment["NNODES"], "1");
    EXPECT_EQ(environment["MASTER_PORT"], "23456");
    EXPECT_EQ(environment["ROLE_NAME"], "worker");
    EXPECT_FALSE(environment.contains("CUDA_VISIBLE_DEVICES")) << "nobody named devices";
  }
}

TEST(RankEnvironmentTest, PretendNodesGetTheirOwnDevices) {
  EngineHarness job(4, 2);
  job.spec.devices = {"0", "1", "2", "3"};
  job.Run();
  EXPECT_EQ(Slice(job, 0), "0,1");
  EXPECT_EQ(Slice(job, 1), "0,1");
  EXPECT_EQ(Slice(job, 2), "2,3");
  EXPECT_EQ(Of(job, 1)["LOCAL_RANK"], "1");
  EXPECT_EQ(Of(job, 2)["LOCAL_RANK"], "0");
  EXPECT_EQ(Of(job, 3)["NODE_RANK"], "1");
  EXPECT_EQ(Of(job, 3)["HIP_VISIBLE_DEVICES"], "2,3");
}

TEST(RankEnvironmentTest, AnInstanceMayHoldSeveralRanks) {
  EngineHarness job(2, 2);
  job.spec.roles = {{Role::kMaster, 1, 2}, {Role::kWorker, 2, 2}};
  job.Run();
  Environment environment = Of(job, 2, 1);
  EXPECT_EQ(environment["RANK"], "5");
  EXPECT_EQ(environment["ROLE_RANK"], "3");
  EXPECT_EQ(environment["ROLE_WORLD_SIZE"], "4");
  EXPECT_EQ(environment["TORCHELASTIC_ERROR_FILE"], "/job/attempt/rank1.error.json");
}

TEST(RankEnvironmentTest, ARestartIsCounted) {
  EngineHarness job(1);
  job.Run();
  job.FailAndJudge(0);
  job.Ended(0);
  job.Run();
  Environment environment = Of(job, 0);
  EXPECT_EQ(environment["TORCHELASTIC_RESTART_COUNT"], "1");
  EXPECT_EQ(environment["AIMASTER_ROUND"], "1");
  EXPECT_EQ(environment["AIMASTER_ATTEMPT"], "1");
}

TEST(BaseEnvironmentTest, OutputIsNotBufferedUnlessSomebodyInsists) {
  JobSpec spec;
  spec.roles = {{}};
  EXPECT_EQ(BaseEnvironment(spec)["PYTHONUNBUFFERED"], "1");
  spec.environment["PYTHONUNBUFFERED"] = "0";
  EXPECT_EQ(BaseEnvironment(spec)["PYTHONUNBUFFERED"], "1");
  spec.environment["PYTHONUNBUFFERED"] = "yes";
  EXPECT_EQ(BaseEnvironment(spec)["PYTHONUNBUFFERED"], "yes");
}

TEST(BaseEnvironmentTest, OneOpenMpThreadOnlyWhereRanksShareANode) {
  JobSpec spec;
  spec.roles = {{Role::kWorker, 2, 1}};
  EXPECT_EQ(BaseEnvironment(spec)["OMP_NUM_THREADS"], "1");
  spec.environment["OMP_NUM_THREADS"] = "4";
  EXPECT_EQ(BaseEnvironment(spec)["OMP_NUM_THREADS"], "4");
  spec.environment.clear();
  spec.local_nodes = 2;
  EXPECT_FALSE(BaseEnvironment(spec).contains("OMP_NUM_THREADS"));
}

}  // namespace
}  // namespace aimaster
