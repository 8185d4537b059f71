#include "master/caretaker.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

constexpr ConnectionId kFirstLink{1}, kSecondLink{2};

JobSpec Spec() {
  JobSpec spec;
  spec.command = {"train"};
  return spec;
}

std::string Hello(uint32_t node, std::vector<uint32_t> live_attempts, uint64_t greatest_epoch = 1) {
  v1::ToMaster message;
  message.mutable_hello()->set_node(node);
  message.mutable_hello()->set_greatest_epoch(greatest_epoch);
  for (uint32_t i = 0; i < live_attempts.size(); ++i) {
    v1::AttemptId* id = message.mutable_hello()->add_live();
    id->set_instance(i);
    id->set_attempt(live_attempts[i]);
  }
  return message.SerializeAsString();
}

std::string Ended(uint32_t instance, uint32_t attempt) {
  v1::ToMaster message;
  message.mutable_report()->set_sequence(1);
  message.mutable_report()->mutable_attempt_ended()->mutable_id()->set_instance(instance);
  message.mutable_report()->mutable_attempt_ended()->mutable_id()->set_attempt(attempt);
  return message.SerializeAsString();
}

v1::ToAgent Read(const std::string& bytes) {
  v1::ToAgent message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  return message;
}

TEST(CaretakerTest, AnAgentIsWelcomeWithWhateverItHolds) {
  Caretaker caretaker(Epoch{5}, Spec(), {NodeIndex{0}});
  const Caretaker::Answer answer = caretaker.OnMessage({}, kFirstLink, Hello(7, {3, 4}));
  ASSERT_EQ(answer.transmit.size(), 1u) << "nothing but the welcome: nothing is stopped";
  EXPECT_EQ(Read(answer.transmit.front().second).welcome().epoch(), 5u);
  EXPECT_EQ(Read(answer.transmit.front().second).welcome().job().command(0), "train");
}

TEST(CaretakerTest, OneThatKnowsALaterMasterIsNotSpokenTo) {
  Caretaker caretaker(Epoch{5}, Spec(), {});
  EXPECT_TRUE(caretaker.OnMessage({}, kFirstLink, Hello(0, {}, 6)).transmit.empty());
}

TEST(CaretakerTest, AHeartbeatIsAnsweredSinceTheLeaseHangsOnIt) {
  Caretaker caretaker(Epoch{5}, Spec(), {});
  caretaker.OnMessage({}, kFirstLink, Hello(0, {0}));
  v1::ToMaster beat;
  beat.mutable_heartbeat()->set_wall_ns(12);
  const Caretaker::Answer answer = caretaker.OnMessage({}, kFirstLink, beat.SerializeAsString());
  ASSERT_EQ(answer.transmit.size(), 1u);
  EXPECT_EQ(Read(answer.transmit.front().second).heartbeat_reply().agent_wall_ns(), 12);
}

TEST(CaretakerTest, AnExitIsNotAcknowledgedAndIsInTheLog) {
  Caretaker caretaker(Epoch{5}, Spec(), {});
  caretaker.OnMessage({}, kFirstLink, Hello(0, {0}));
  v1::ToMaster message;
  message.mutable_report()->set_sequence(1);
  message.mutable_report()->mutable_rank_exited()->set_rank(3);
  message.mutable_report()->mutable_rank_exited()->set_code(0);
  const Caretaker::Answer answer = caretaker.OnMessage({}, kFirstLink, message.SerializeAsString());
  EXPECT_TRUE(answer.transmit.empty());
  ASSERT_EQ(answer.log.size(), 1u);
  EXPECT_NE(answer.log.front().find("rank 3"), std::string::npos);
  EXPECT_NE(answer.log.front().find("ended with code 0; it is not recorded"), std::string::npos);
}

TEST(CaretakerTest, AStopReachesWhatLivesAndIsOverWhenAllOfItHasEnded) {
  Caretaker caretaker(Epoch{5}, Spec(), {NodeIndex{0}, NodeIndex{1}});
  caretaker.OnMessage({}, kFirstLink, Hello(0, {2}));
  EXPECT_FALSE(caretaker.has_stopped());
  const Caretaker::Answer stops = caretaker.Stop(/*at_once=*/false);
  ASSERT_EQ(stops.transmit.size(), 1u);
  const v1::Command command = Read(stops.transmit.front().second).command();
  EXPECT_EQ(command.epoch(), 5u);
  EXPECT_EQ(command.stop_instance().id().attempt(), 2u);
  EXPECT_FALSE(command.stop_instance().at_once());
  caretaker.OnMessage({}, kFirstLink, Ended(0, 2));
  EXPECT_FALSE(caretaker.has_stopped()) << "the other node has not been heard";
  const Caretaker::Answer late = caretaker.OnMessage({}, kSecondLink, Hello(1, {9}));
  ASSERT_EQ(late.transmit.size(), 2u) << "a welcome, and the stop";
  EXPECT_EQ(Read(late.transmit.back().second).command().stop_instance().id().attempt(), 9u);
  caretaker.OnMessage({}, kSecondLink, Ended(0, 9));
  EXPECT_TRUE(caretaker.has_stopped());
}

TEST(CaretakerTest, GarbageIsPassedOver) {
  Caretaker caretaker(Epoch{5}, Spec(), {});
  EXPECT_TRUE(caretaker.OnMessage({}, kFirstLink, "\xff\xff").transmit.empty());
  EXPECT_TRUE(caretaker.OnMessage({}, kFirstLink, "").transmit.empty());
}

}  // namespace
}  // namespace aimaster
