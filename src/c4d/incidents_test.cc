// Real trainings of 16 ranks, in which ranks were made to fail: exactly those are named.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "c4d/c4d_test_support.h"

namespace aimaster::c4d {
namespace {

Observation ReadJob(const std::string& name) {
  static const std::map<std::string, Function> kFunctions = {
      {"AllReduce", Function::kAllReduce}, {"AllGather", Function::kAllGather},
      {"AllToAll", Function::kAllToAll},   {"ReduceScatter", Function::kReduceScatter},
      {"Broadcast", Function::kBroadcast}, {"Send", Function::kSend},
      {"Receive", Function::kReceive}};
  const char* source = std::getenv("AIMASTER_SOURCE");
  std::ifstream file(std::string(source == nullptr ? "." : source) + "/tests/data/c4d/" + name);
  Observation job;
  job.texts.push_back("BFloat16");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what, members, function, count, type, peer;
    words >> what;
    if (what == "group") {
      Communicator& group = job.communicators.emplace_back();
      words >> group.name >> group.description >> members;
      std::istringstream list(members);
      for (std::string member; std::getline(list, member, ',');) {
        group.members.push_back(Rank{static_cast<uint32_t>(std::stoul(member))});
      }
    } else if (what == "state") {
      MemberState& state = job.states.emplace_back();
      uint32_t rank = 0;
      words >> rank >> state.issued >> state.completed;
      state.communicator = static_cast<uint32_t>(job.communicators.size() - 1);
      state.rank = Rank{rank};
      state.first_operation = static_cast<uint32_t>(job.operations.size());
      job.ranks.resize(std::max<size_t>(job.ranks.size(), rank + 1), {.is_observed = true});
    } else if (what == "operation") {
      Operation& operation = job.operations.emplace_back();
      int64_t microseconds = 0;
      words >> operation.sequence >> function >> count >> type >> peer >> microseconds;
      operation.function = kFunctions.at(function);
      operation.count = count == "-" ? kUnknown : std::stoull(count);
      operation.type = type == "BFloat16" ? 1 : 0;
      if (peer != "-") operation.peer = Rank{static_cast<uint32_t>(std::stoul(peer))};
      operation.age = std::chrono::microseconds(microseconds);
      ++job.states.back().operation_count;
      job.states.back().carries_point_to_point |= IsPointToPoint(operation.function);
    }
  }
  return job;
}

struct Incident {
  std::string file;
  VerdictKind kind;
  std::set<uint32_t> culprits;
};

class IncidentTest : public testing::TestWithParam<Incident> {
 protected:
  Observation job_ = ReadJob(GetParam().file);
};

TEST_P(IncidentTest, ExactlyTheCulpritsAreNamed) {
  ASSERT_EQ(job_.ranks.size(), 16u);
  const std::vector<Verdict> verdicts = FindHangs(job_, {});
  EXPECT_EQ(AllAccused(verdicts), GetParam().culprits) << Describe(verdicts);
  for (const Verdict& verdict : verdicts) {
    EXPECT_EQ(verdict.kind, GetParam().kind) << Describe(verdicts);
    EXPECT_FALSE(verdict.is_group);
  }
}

TEST_P(IncidentTest, WithAnyFourFilesMissingNobodyElseIsNamed) {
  int named = 0, all = 0;
  for (uint32_t hidden = 0; hidden < 1u << 16; ++hidden) {
    if (__builtin_popcount(hidden) != 4) continue;
    Observation job = job_;
    std::set<uint32_t> left = GetParam().culprits;
    for (uint32_t rank = 0; rank < 16; ++rank) {
      if ((hidden >> rank & 1) == 0) continue;
      Hide(job, rank);
      left.erase(rank);
    }
    const std::vector<Verdict> verdicts = FindHangs(job, {});
    all += static_cast<int>(left.size());
    for (const uint32_t rank : AllAccused(verdicts)) {
      ASSERT_TRUE(left.contains(rank)) << "hidden " << hidden << "\n" << Describe(verdicts);
      ++named;
    }
  }
  // Who alone could have told that a device is behind may be among those who are missing.
  EXPECT_GT(named * 100, all * 94) << named << " of " << all;
}

TEST_P(IncidentTest, WithEntriesMissingNobodyElseIsNamed) {
  std::mt19937 random(1);
  int named = 0, all = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto share = 1 + random() % 9;
    const bool oldest_only = i % 2 == 0;  // as a ring that has been written over; else a file with holes
    std::vector<uint32_t> lost(16);
    for (uint32_t& count : lost) count = static_cast<uint32_t>(random() % 20);
    const Observation job = KeepOperations(job_, [&](const MemberState& state, uint32_t index) {
      if (!oldest_only) return random() % 10 >= share;
      uint32_t older = 0;  // that this rank issued before
      for (const MemberState& other : job_.states) {
        if (other.rank != state.rank) continue;
        for (uint32_t o = other.first_operation; o < other.first_operation + other.operation_count; ++o) {
          older += job_.operations[o].age > job_.operations[index].age ? 1 : 0;
        }
      }
      return older >= lost[Value(state.rank)];
    });
    const std::vector<Verdict> verdicts = FindHangs(job, {});
    all += 2;
    for (const uint32_t rank : AllAccused(verdicts)) {
      ASSERT_TRUE(GetParam().culprits.contains(rank)) << "case " << i << "\n" << Describe(verdicts);
      ++named;
    }
  }
  EXPECT_GT(named * 100, all * 95) << named << " of " << all;
}

INSTANTIATE_TEST_SUITE_P(All, IncidentTest,
                         testing::Values(Incident{"device_fault.txt", VerdictKind::kRankCommHang, {12, 14}},
                                         Incident{"held_lock.txt", VerdictKind::kRankNonCommHang, {10, 15}}),
                         [](const testing::TestParamInfo<Incident>& incident) {
                           return incident.param.file.substr(0, 4);
                         });

}  // namespace
}  // namespace aimaster::c4d
