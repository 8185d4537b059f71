#include "core/roles.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

JobSpec Job(Framework framework, std::vector<RoleSpec> roles) {
  JobSpec spec;
  spec.framework = framework;
  spec.roles = std::move(roles);
  CompleteRoles(spec.roles);
  return spec;
}

const std::vector<RoleSpec> kAllRoles{{Role::kChief}, {Role::kWorker, 2}, {Role::kPs, 2}, {Role::kEvaluator}};

TEST(RolesTest, WhoServesOrLooksOnDoesNotCountForSuccess) {
  const JobSpec spec = Job(Framework::kPyTorch, kAllRoles);
  EXPECT_TRUE(CountsForSuccess(spec, Role::kChief, 0));
  EXPECT_TRUE(CountsForSuccess(spec, Role::kWorker, 1));
  EXPECT_FALSE(CountsForSuccess(spec, Role::kPs, 0));
  EXPECT_FALSE(CountsForSuccess(spec, Role::kEvaluator, 0));
  EXPECT_EQ(CountingInstances(spec), 3u);
  EXPECT_EQ(SuccessText(spec), "every rank that is no ps or evaluator ended with exit code 0");
  EXPECT_EQ(SuccessText(Job(Framework::kPyTorch, {{Role::kWorker, 4}})), "every rank ended with exit code 0");
}

TEST(RolesTest, OfAChiefWhoseWorkersAreServersTheChiefAloneCounts) {
  JobSpec spec = Job(Framework::kTensorFlow, kAllRoles);
  EXPECT_TRUE(CountsForSuccess(spec, Role::kChief, 0));
  EXPECT_FALSE(CountsForSuccess(spec, Role::kWorker, 0));
  EXPECT_EQ(CountingInstances(spec), 1u);
  EXPECT_EQ(SuccessText(spec), "the chief ended with exit code 0");
  spec.success_policy = SuccessPolicy::kAllWorkers;
  EXPECT_EQ(CountingInstances(spec), 3u);
  EXPECT_EQ(CountingInstances(Job(Framework::kTensorFlow, {{Role::kChief}, {Role::kWorker, 2}})), 3u) << "no ps";
  EXPECT_EQ(CountingInstances(Job(Framework::kTensorFlow, {{Role::kWorker, 2}, {Role::kPs}})), 2u) << "no chief";
}

TEST(RolesTest, WithoutAChiefTheMasterOrTheFirstWorkerLeads) {
  JobSpec spec = Job(Framework::kTensorFlow, {{Role::kWorker, 3}});
  spec.success_policy = SuccessPolicy::kChiefWorker;
  EXPECT_TRUE(CountsForSuccess(spec, Role::kWorker, 0));
  EXPECT_FALSE(CountsForSuccess(spec, Role::kWorker, 1));
  EXPECT_EQ(SuccessText(spec), "the first worker ended with exit code 0");
  spec.roles.insert(spec.roles.begin(), RoleSpec{Role::kMaster});
  EXPECT_TRUE(CountsForSuccess(spec, Role::kMaster, 0));
  EXPECT_FALSE(CountsForSuccess(spec, Role::kWorker, 0));
}

TEST(RolesTest, TheEvaluatorIsInNoCluster) {
  const JobSpec spec = Job(Framework::kTensorFlow, kAllRoles);
  EXPECT_TRUE(HasAddress(spec, Role::kPs));
  EXPECT_FALSE(HasAddress(spec, Role::kEvaluator));
  EXPECT_FALSE(HasAddress(Job(Framework::kPyTorch, kAllRoles), Role::kWorker));
}

TEST(RolesTest, IndependentInstancesAreRestartedAloneAndKeepWhatIsDone) {
  const JobSpec batch = Job(Framework::kElasticBatch, {{Role::kMaster}, {Role::kWorker, 2}});
  EXPECT_TRUE(RestartsAlone(batch, Role::kMaster));
  EXPECT_TRUE(KeepsResults(batch));
  EXPECT_FALSE(MeetAtMaster(batch));
  const JobSpec training = Job(Framework::kPyTorch, {{Role::kMaster}, {Role::kWorker, 2}});
  EXPECT_FALSE(RestartsAlone(training, Role::kMaster));
  EXPECT_TRUE(RestartsAlone(training, Role::kWorker));
  EXPECT_FALSE(KeepsResults(training));
  EXPECT_TRUE(MeetAtMaster(training));
}

TEST(RolesTest, OfAnMpiJobTheLauncherCountsAndNothingComesBackAlone) {
  JobSpec spec;
  spec.framework = Framework::kMpi;
  spec.roles = MpiRoles(2);
  for (const SuccessPolicy policy : {SuccessPolicy::kAuto, SuccessPolicy::kAllWorkers, SuccessPolicy::kChiefWorker}) {
    spec.success_policy = policy;
    EXPECT_TRUE(CountsForSuccess(spec, Role::kLauncher, 0));
    EXPECT_FALSE(CountsForSuccess(spec, Role::kWorker, 0));
    EXPECT_EQ(CountingInstances(spec), 1u);
  }
  EXPECT_FALSE(RestartsAlone(spec, Role::kLauncher));
  EXPECT_FALSE(RestartsAlone(spec, Role::kWorker));
}

TEST(RolesTest, AnMpiJobFromBeforeLaunchersIsAsAnyOther) {
  const JobSpec spec = Job(Framework::kMpi, {{Role::kWorker, 2}});
  EXPECT_FALSE(IsMpi(spec));
  EXPECT_EQ(CountingInstances(spec), 2u);
  EXPECT_TRUE(CountsForSuccess(spec, Role::kWorker, 1));
  EXPECT_TRUE(RestartsAlone(spec, Role::kWorker));
}

TEST(RolesTest, InAJobOfServersAloneAllCount) {
  JobSpec spec;
  spec.roles = {{Role::kPs, 2}};
  EXPECT_EQ(CountingInstances(spec), 2u);
  EXPECT_TRUE(CountsForSuccess(spec, Role::kPs, 0));
}

TEST(RolesTest, WhatAFrameworkCanNotBeStartedWithIsRefused) {
  EXPECT_TRUE(CheckRoles(Job(Framework::kTensorFlow, kAllRoles)));
  const Status two = CheckRoles(Job(Framework::kTensorFlow, {{Role::kWorker, 1, 2}}));
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().kind, ErrorKind::kUsage);
  EXPECT_NE(two.error().message.find("--nproc-per-node is 2"), std::string::npos);
  const Status ps = CheckRoles(Job(Framework::kElasticBatch, {{Role::kWorker}, {Role::kPs}}));
  ASSERT_FALSE(ps);
  EXPECT_NE(ps.error().message.find("--ps"), std::string::npos);
}

}  // namespace
}  // namespace aimaster
