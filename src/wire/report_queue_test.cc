#include "wire/report_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <deque>
#include <string>
#include <vector>

namespace aimaster {
namespace {

v1::Report Said(const std::string& what) {
  v1::Report report;
  report.mutable_rank_exited()->set_last_error_line(what);
  return report;
}

TEST(ReportQueueTest, NumbersAscendFromOneAndReportsStayUntilAcknowledged) {
  ReportQueue queue;
  EXPECT_EQ(queue.first_unacknowledged(), 1u);
  EXPECT_EQ(queue.Push(Said("a")).sequence(), 1u);
  EXPECT_EQ(queue.Push(Said("b")).sequence(), 2u);
  EXPECT_EQ(queue.unacknowledged().size(), 2u);
  EXPECT_EQ(queue.first_unacknowledged(), 1u);
}

TEST(ReportQueueTest, AnAcknowledgementTakesAllBeforeItAlong) {
  ReportQueue queue;
  for (const char* what : {"a", "b", "c"}) queue.Push(Said(what));
  queue.Acknowledge(2);
  ASSERT_EQ(queue.unacknowledged().size(), 1u);
  EXPECT_EQ(queue.unacknowledged().front().rank_exited().last_error_line(), "c");
  queue.Acknowledge(1);  // late and harmless
  EXPECT_EQ(queue.first_unacknowledged(), 3u);
  queue.Acknowledge(3);
  EXPECT_EQ(queue.first_unacknowledged(), 4u);
  EXPECT_EQ(queue.Push(Said("d")).sequence(), 4u);
}

TEST(ReportQueueTest, ANumberNeverGivenOutChangesNothing) {
  ReportQueue queue;
  queue.Push(Said("a"));
  queue.Acknowledge(2);
  queue.Acknowledge(UINT64_MAX);
  queue.Acknowledge(0);
  EXPECT_EQ(queue.first_unacknowledged(), 1u);
}

TEST(ReportQueueTest, ThePushedReportCanBeSentWhileOthersComeAndGo) {
  ReportQueue queue;
  queue.Push(Said("first"));
  const v1::Report& second = queue.Push(Said("second"));
  for (int i = 0; i < 1000; ++i) queue.Push(Said("more"));
  queue.Acknowledge(1);
  EXPECT_EQ(second.rank_exited().last_error_line(), "second");
}

// An agent and a master with a connection between them that keeps order while it lives and forgets when it breaks.
struct World {
  ReportQueue agent;
  std::deque<v1::Report> to_master;
  std::deque<uint64_t> to_agent;
  std::vector<std::string> journal;
  uint64_t journaled = 0;
  std::vector<std::string> said;

  void Say() {
    said.push_back(std::to_string(said.size()));
    to_master.push_back(agent.Push(Said(said.back())));
  }
  void MasterReceives() {
    if (to_master.empty()) return;
    const v1::Report report = to_master.front();
    to_master.pop_front();
    if (report.sequence() > journaled) {
      RC_ASSERT(report.sequence() == journaled + 1);  // never a gap
      journal.push_back(report.rank_exited().last_error_line());
      journaled = report.sequence();
    }
  }
  void MasterAcknowledges() { to_agent.push_back(journaled); }
  void AgentReceives() {
    if (to_agent.empty()) return;
    agent.Acknowledge(to_agent.front());
    to_agent.pop_front();
  }
  void Reconnect() {
    to_agent.clear();
    to_master.assign(agent.unacknowledged().begin(), agent.unacknowledged().end());
  }
};

TEST(ReportQueueTest, WhateverTheConnectionDoesNothingIsLostAndNothingCountsTwice) {
  EXPECT_TRUE(rc::check([] {
    World world;
    const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 5));
    for (const int step : steps) {
      if (step == 0) world.Say();
      if (step == 1) world.MasterReceives();
      if (step == 2) world.MasterAcknowledges();
      if (step == 3) world.AgentReceives();
      if (step == 4) world.Reconnect();
    }
    world.Reconnect();
    while (!world.to_master.empty()) world.MasterReceives();
    RC_ASSERT(world.journal == world.said);
    world.MasterAcknowledges();
    world.AgentReceives();
    RC_ASSERT(world.agent.unacknowledged().empty());
  }));
}

}  // namespace
}  // namespace aimaster
