// Jobs in which something hangs, written down by hand, and what is said of them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "c4d/hangs.h"

namespace aimaster::c4d {

using namespace std::chrono_literals;

// An observation that is written down group by group, member by member.
class JobBuilder {
 public:
  explicit JobBuilder(uint32_t ranks) {
    job_.ranks.assign(ranks, {.is_observed = true});
    job_.texts = {"", "BFloat16", "Float"};
  }

  JobBuilder& Group(std::string name, std::vector<uint32_t> members) {
    Communicator& group = job_.communicators.emplace_back();
    group.name = std::move(name);
    for (const uint32_t member : members) group.members.push_back(Rank{member});
    return *this;
  }
  // In the group above.
  JobBuilder& Member(uint32_t rank, uint64_t issued, uint64_t completed, std::vector<Operation> operations = {}) {
    MemberState& state = job_.states.emplace_back();
    state.communicator = static_cast<uint32_t>(job_.communicators.size() - 1);
    state.rank = Rank{rank};
    state.issued = issued;
    state.completed = completed;
    state.first_operation = static_cast<uint32_t>(job_.operations.size());
    state.operation_count = static_cast<uint32_t>(operations.size());
    for (const Operation& operation : operations) {
      job_.operations.push_back(operation);
      state.carries_point_to_point = state.carries_point_to_point || IsPointToPoint(operation.function);
    }
    return *this;
  }
  // A member with one operation outstanding, the one that it has issued last.
  JobBuilder& In(uint32_t rank, uint64_t issued, Duration age, Function function = Function::kAllReduce) {
    return Member(rank, issued, issued - 1, {{.sequence = issued, .age = age, .function = function}});
  }
  // A member that has completed all that it has issued.
  JobBuilder& Out(uint32_t rank, uint64_t issued) { return Member(rank, issued, issued); }

  MemberState& Last() { return job_.states.back(); }
  Operation& LastOperation() { return job_.operations.back(); }
  RankState& Process(uint32_t rank) { return job_.ranks[rank]; }
  Observation& Job() { return job_; }

 private:
  Observation job_;
};

// "RankCommHang 12; RankNonCommHang 3,4": kind and ranks, without those of which only nothing is known.
inline std::string Accused(const std::vector<Verdict>& verdicts) {
  std::string text;
  for (const Verdict& verdict : verdicts) {
    if (verdict.kind == VerdictKind::kNoProbeData) continue;
    text += (text.empty() ? "" : "; ") + std::string(Name(verdict.kind));
    if (verdict.is_group) text += " of group";
    for (size_t i = 0; i < verdict.ranks.size(); ++i) {
      text += (i == 0 ? " " : ",") + std::to_string(Value(verdict.ranks[i]));
    }
  }
  return text;
}
inline std::string Accused(const Observation& job) { return Accused(FindHangs(job, {})); }

inline std::string Describe(const std::vector<Verdict>& verdicts) {
  std::string text;
  for (const Verdict& verdict : verdicts) {
    text += std::string(Name(verdict.level)) + " " + std::string(Name(verdict.kind)) + "\n";
    for (const std::string& sentence : verdict.evidence) text += "  " + sentence + "\n";
  }
  return text;
}

inline std::set<uint32_t> AllAccused(const std::vector<Verdict>& verdicts) {
  std::set<uint32_t> accused;
  for (const Verdict& verdict : verdicts) {
    if (verdict.kind == VerdictKind::kNoProbeData) continue;
    for (const Rank rank : verdict.ranks) accused.insert(Value(rank));
  }
  return accused;
}

// The same job, had nothing been heard of this rank.
inline void Hide(Observation& job, uint32_t rank) {
  job.ranks[rank].is_observed = false;
  std::erase_if(job.states, [&](const MemberState& state) { return Value(state.rank) == rank; });
}

// The same job, had the sources kept only those operations for which `keeps` says so.
template <typename Keeps>
Observation KeepOperations(const Observation& job, Keeps keeps) {
  Observation kept = job;
  kept.operations.clear();
  for (MemberState& state : kept.states) {
    const auto first = static_cast<uint32_t>(kept.operations.size());
    for (uint32_t i = state.first_operation; i < state.first_operation + state.operation_count; ++i) {
      if (keeps(state, i)) kept.operations.push_back(job.operations[i]);
    }
    state.first_operation = first;
    state.operation_count = static_cast<uint32_t>(kept.operations.size()) - first;
  }
  return kept;
}

}  // namespace aimaster::c4d
