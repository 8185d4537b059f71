// What fails, where, and how often.
#include "journal/aggregate.h"

#include <gtest/gtest.h>

#include "journal/job_json.h"

namespace aimaster {
namespace {

struct Jobs {
  JobSnapshot snapshot;

  Jobs() {
    for (uint32_t i = 0; i < 3; ++i) {
      snapshot.nodes[NodeIndex{i}].name = "node-" + std::to_string(i);
      snapshot.instances.push_back({.name = "worker-" + std::to_string(i)});
    }
  }
  RestartRecord& Record(uint32_t at_seconds) {
    RestartRecord& record = snapshot.records.emplace_back();
    record.restarts = static_cast<uint32_t>(snapshot.records.size());
    record.restart_time.wall = Wall{std::chrono::seconds(at_seconds)};
    return record;
  }
  static FailureDetail Detail(uint32_t rank, uint32_t instance, uint32_t node, bool is_root, const std::string& fault,
                              int code = 1) {
    return {.rank = Rank{rank},
            .instance = InstanceIndex{instance},
            .node = NodeIndex{node},
            .is_root = is_root,
            .error_code = code,
            .fault = fault,
            .message = fault + " at rank " + std::to_string(rank),
            .source = ErrorSource::kLog};
  }
};

TEST(AggregateTest, DetailsAreGroupedByFaultNodeAndInstance) {
  Jobs job;
  RestartRecord& first = job.Record(100);
  first.judgement.details = {Jobs::Detail(2, 2, 2, true, "GpuEcc"), Jobs::Detail(0, 0, 0, false, "PeerLost")};
  first.judgement.root_node = NodeIndex{2};
  first.isolated_node = true;
  RestartRecord& second = job.Record(200);
  second.judgement.details = {Jobs::Detail(2, 2, 2, true, "GpuEcc", 134), Jobs::Detail(0, 0, 0, false, "PeerLost")};
  RestartRecord& third = job.Record(300);
  third.judgement.details = {Jobs::Detail(2, 2, 1, true, "GpuEcc")};

  const std::vector<AggregatedFault> faults = AggregateFaults(job.snapshot);
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0].fault, "GpuEcc");
  EXPECT_EQ(faults[0].node_name, "node-2");
  EXPECT_EQ(faults[0].instance_name, "worker-2");
  EXPECT_EQ(faults[0].count, 2u);
  EXPECT_EQ(faults[0].roots, 2u);
  EXPECT_EQ(faults[0].isolations, 1u);
  EXPECT_EQ(faults[0].codes, (std::set<std::string>{"1", "134"}));
  EXPECT_EQ(faults[0].first_time, Wall{std::chrono::seconds(100)});
  EXPECT_EQ(faults[0].last_time, Wall{std::chrono::seconds(200)});
  EXPECT_EQ(faults[1].node_name, "node-1") << "the same fault on another node is another group";
  EXPECT_EQ(faults[2].fault, "PeerLost") << "what was never a root cause comes last";
  EXPECT_EQ(faults[2].roots, 0u);
}

TEST(AggregateTest, AnInstanceOfSeveralRanksIsOneEntry) {
  Jobs job;
  RestartRecord& record = job.Record(1);
  record.judgement.details = {Jobs::Detail(5, 1, 0, false, "PeerLost"), Jobs::Detail(4, 1, 0, true, "Segfault"),
                              Jobs::Detail(0, 0, 0, false, "PeerLost"), Jobs::Detail(1, 0, 0, false, "PeerLost")};
  const std::vector<FailureDetail> details = InstanceDetails(record);
  ASSERT_EQ(details.size(), 2u);
  EXPECT_EQ(details[0].rank, Rank{4}) << "the one that tells most";
  EXPECT_TRUE(details[0].is_root);
  EXPECT_EQ(details[1].rank, Rank{0});
}

TEST(AggregateTest, WhoOnlyFollowedInAnAsyncJobIsAConsequenceInItsOwnRecord) {
  Jobs job;
  RestartRecord& record = job.Record(1);
  record.scope = RestartScope::kInstance;
  record.judgement.is_consequence = true;
  record.judgement.details = {Jobs::Detail(0, 0, 0, true, "PeerLost")};
  EXPECT_FALSE(InstanceDetails(record)[0].is_root);
  EXPECT_EQ(AggregateFaults(job.snapshot)[0].roots, 0u);
}

TEST(AggregateTest, WhatHadNoExitStatusHasTheNameOfItsFaultAsCode) {
  Jobs job;
  job.Record(1).judgement.details = {Jobs::Detail(0, 0, 0, true, "NodeLost", 0)};
  EXPECT_EQ(AggregateFaults(job.snapshot)[0].codes, (std::set<std::string>{"NodeLost"}));
}

TEST(AggregateTest, AJobWithoutRestartsHasNone) { EXPECT_TRUE(AggregateFaults(Jobs().snapshot).empty()); }

TEST(AggregateTest, ScriptsReadTheSame) {
  Jobs job;
  job.Record(100).judgement.details = {Jobs::Detail(2, 2, 2, true, "GpuEcc")};
  const nlohmann::json list = AggregateJson(AggregateFaults(job.snapshot));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["fault"], "GpuEcc");
  EXPECT_EQ(list[0]["node"], "node-2");
  EXPECT_EQ(list[0]["instance"], "worker-2");
  EXPECT_EQ(list[0]["count"], 1);
  EXPECT_EQ(list[0]["roots"], 1);
  EXPECT_EQ(list[0]["consequences"], 0);
  EXPECT_EQ(list[0]["isolations"], 0);
  EXPECT_EQ(list[0]["ranks"], nlohmann::json({2}));
  EXPECT_EQ(list[0]["codes"], nlohmann::json({"1"}));
  EXPECT_EQ(list[0]["sources"], nlohmann::json({"log"}));
  EXPECT_EQ(list[0]["message"], "GpuEcc at rank 2");
  EXPECT_EQ(list[0]["first_time"], list[0]["last_time"]);
}

}  // namespace
}  // namespace aimaster
