#include "stacks/capture.h"

#include <gtest/gtest.h>

#include <set>

#include "stacks/document.h"
#include "stacks/groups.h"
#include "stacks/stacks_test_support.h"

namespace aimaster::stacks {
namespace {

// All that a capture says, whatever the order of its tables.
std::multiset<std::string> SaidBy(const Capture& capture) {
  std::multiset<std::string> said;
  for (const ThreadRow& thread : capture.threads) {
    const ProcessRow& process = capture.processes[thread.process];
    std::string text =
        capture.Text(process.node) + " " + std::to_string(process.rank) + " " + capture.Text(thread.name);
    for (const Frame& frame : FramesOf(capture, thread.stack)) text += ";" + Describe(frame);
    said.insert(std::move(text));
  }
  return said;
}

TEST(CaptureTest, WhatIsTheSameIsHeldOnce) {
  const Capture capture = OneOf(100, 5);
  EXPECT_EQ(capture.processes.size(), 100u);
  EXPECT_EQ(capture.threads.size(), 201u);
  EXPECT_EQ(capture.stacks.size(), 4u);
  EXPECT_EQ(capture.frames.size(), 11u);
}

TEST(CaptureTest, NodesPutTogetherSayWhatTheyWouldHaveSaidAtOnce) {
  const Capture whole = OneOf(8, 5);
  std::vector<Capture> nodes;
  for (uint32_t node = 0; node < 4; ++node) {
    CaptureBuilder builder;
    for (uint32_t i = 0; i < whole.processes.size(); ++i) {
      const ProcessRow& process = whole.processes[i];
      if (process.rank / 2 != node) continue;
      std::vector<Thread> threads;
      for (const ThreadRow& thread : whole.threads) {
        if (thread.process != i) continue;
        threads.push_back({.id = thread.id,
                           .name = whole.Text(thread.name),
                           .is_waiting = thread.is_waiting,
                           .frames = FramesOf(whole, thread.stack)});
      }
      builder.Add(OfRank(process.rank), threads);
    }
    nodes.push_back(builder.Take());
  }
  CaptureBuilder forwards, backwards;
  for (const Capture& node : nodes) forwards.Add(node);
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) backwards.Add(*node);
  EXPECT_EQ(SaidBy(forwards.capture()), SaidBy(whole));
  EXPECT_EQ(SaidBy(backwards.capture()), SaidBy(whole));
  EXPECT_EQ(OneLine(backwards.capture(), GroupStacks(backwards.capture())), OneLine(whole, GroupStacks(whole)));
}

TEST(CaptureTest, ABuilderThatWasEmptiedBeginsAnew) {
  CaptureBuilder builder;
  builder.Add(OneOf(4, 1));
  builder.Take();
  builder.Add(OneOf(2, 1));
  EXPECT_EQ(SaidBy(builder.Take()), SaidBy(OneOf(2, 1)));
}

TEST(CaptureTest, WhatIsTooMuchLosesThreadsBeforeRanks) {
  const Capture whole = OneOf(200, 5);
  const size_t size = FormatDocument(whole).size();
  EXPECT_EQ(Bounded(whole, size), whole);

  const Capture less = Bounded(whole, size - 1);
  EXPECT_EQ(less.processes.size(), 200u);
  EXPECT_EQ(less.threads.size(), 200u) << "main threads";
  EXPECT_EQ(less.threads_cut, 201u);
  EXPECT_LT(FormatDocument(less).size(), size);

  const Capture least = Bounded(whole, size / 10);
  EXPECT_LE(FormatDocument(least).size(), size / 10);
  EXPECT_GT(least.processes.size(), 0u);
  EXPECT_EQ(least.processes.size() + least.processes_cut, 200u);
  EXPECT_EQ(least.threads.size() + least.threads_cut, 401u);
}

}  // namespace
}  // namespace aimaster::stacks
