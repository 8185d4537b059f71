#include "master/framework_environment.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/engine_harness.h"

namespace aimaster {
namespace {

using nlohmann::json;

EngineHarness Job(Framework framework, std::vector<RoleSpec> roles, uint32_t nodes) {
  EngineHarness job(1, nodes);
  job.spec.framework = framework;
  job.spec.roles = std::move(roles);
  CompleteRoles(job.spec.roles);
  job.Submit();
  job.JoinAll();
  return job;
}

TEST(FrameworkEnvironmentTest, EveryTaskOfATensorFlowJobKnowsTheWholeCluster) {
  EngineHarness job =
      Job(Framework::kTensorFlow, {{Role::kChief}, {Role::kWorker, 2}, {Role::kPs}, {Role::kEvaluator}}, 2);
  // Chief and both workers are on the first node, ps and evaluator on the second.
  job.Feed(PortReserved{job.job().reservation, 2001, NodeIndex{0}, {2001, 2002, 2003}});
  job.Feed(PortReserved{job.job().reservation, 3001, NodeIndex{1}, {3001}});
  ASSERT_EQ(job.job().phase, Phase::kRunning);
  const json cluster{
      {"chief", {"10.0.0.0:2001"}}, {"worker", {"10.0.0.0:2002", "10.0.0.0:2003"}}, {"ps", {"10.0.0.1:3001"}}};
  const auto config = [&](uint32_t instance) {
    return json::parse(FrameworkEnvironment(job.job(), job.job().instances[instance], instance).at("TF_CONFIG"));
  };
  EXPECT_EQ(config(0),
            (json{{"cluster", cluster}, {"task", {{"type", "chief"}, {"index", 0}}}, {"environment", "cloud"}}));
  EXPECT_EQ(config(2)["task"], (json{{"type", "worker"}, {"index", 1}}));
  EXPECT_EQ(config(3)["task"], (json{{"type", "ps"}, {"index", 0}}));
  EXPECT_EQ(config(4)["task"], (json{{"type", "evaluator"}, {"index", 0}}));
  EXPECT_EQ(config(4)["cluster"], cluster) << "the evaluator is not in it";
}

TEST(FrameworkEnvironmentTest, AnAddressOfTheSixthVersionIsBracketed) {
  EngineHarness job(1, 1);
  job.spec.framework = Framework::kTensorFlow;
  job.Submit();
  job.Feed(NodeJoined{NodeIndex{0}, "node-0", "fe80::1"});
  job.Feed(PortReserved{job.job().reservation, 2001, NodeIndex{0}, {2001}});
  const Environment environment = FrameworkEnvironment(job.job(), job.job().instances[0], 0);
  EXPECT_EQ(json::parse(environment.at("TF_CONFIG"))["cluster"]["worker"][0], "[fe80::1]:2001");
}

TEST(FrameworkEnvironmentTest, AJobFromBeforeAddressesKeepsTheConfigurationThatItBrought) {
  const EngineHarness job = Job(Framework::kTensorFlow, {{Role::kWorker, 2}}, 1);
  ASSERT_EQ(job.job().instances[0].port, 0) << "none was reserved yet";
  EXPECT_TRUE(FrameworkEnvironment(job.job(), job.job().instances[0], 0).empty());
}

TEST(FrameworkEnvironmentTest, AnElasticBatchRankKnowsItsShareAndNobodyElse) {
  const EngineHarness job = Job(Framework::kElasticBatch, {{Role::kWorker, 3, 2}}, 1);
  ASSERT_EQ(job.job().phase, Phase::kRunning) << "no port is waited for";
  const Environment environment = FrameworkEnvironment(job.job(), job.job().instances[1], 3);
  EXPECT_EQ(environment.at("AIMASTER_SHARD_INDEX"), "3");
  EXPECT_EQ(environment.at("AIMASTER_SHARD_COUNT"), "6");
  EXPECT_EQ(json::parse(environment.at("ElASTICBATCH_CONFIG")),
            (json{{"task", {{"type", "worker"}, {"index", 1}}}, {"environment", "cloud"}}));
  const StartInstance start{.instance = InstanceIndex{1}, .node = NodeIndex{0}};
  const Environment all = RankEnvironment(job.job(), PlacesOnNodes(job.job())[1], start, 1, "/attempt");
  EXPECT_EQ(all.at("AIMASTER_SHARD_INDEX"), "3");
  EXPECT_FALSE(all.contains("MASTER_PORT"));
  EXPECT_FALSE(all.contains("MASTER_ADDR"));
}

TEST(FrameworkEnvironmentTest, OthersGetNothingBeside) {
  const EngineHarness job = Job(Framework::kPyTorch, {{Role::kWorker, 2}}, 1);
  EXPECT_TRUE(FrameworkEnvironment(job.job(), job.job().instances[0], 0).empty());
}

}  // namespace
}  // namespace aimaster
