#include "master/stack_collector.h"

#include <set>

#include "core/quote.h"
#include "stacks/document.h"
#include "stacks/groups.h"

namespace aimaster {
namespace {

Duration Share(const JobState& job, double share) {
  return std::chrono::duration_cast<Duration>(job.spec.timing.stack_timeout * share);
}

}  // namespace

std::chrono::milliseconds StackTimeOfTools(const JobState& job) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Share(job, kStackShareOfTools));
}

void StackCollector::Begin(Moment now, const CaptureStacks& order, const JobState& job) {
  builder_.Take();
  awaited_.clear();
  number_ = order.capture;
  reason_ = order.reason;
  began_ = now.wall;
  deadline_ = now.monotonic + Share(job, kStackShareOfNodes);
  for (const InstanceState& instance : job.instances) {
    const auto node = job.nodes.find(instance.node);
    if (!instance.live || node == job.nodes.end() || node->second.lost) continue;
    Awaited& awaited = awaited_[instance.node];
    awaited.name = node->second.name;
    for (uint32_t local = 0; local < instance.ranks; ++local) {
      const uint32_t rank = Value(instance.first_rank) + local;
      if (rank < job.rank_ended.size() && !job.rank_ended[rank]) awaited.ranks.emplace_back(instance.name, rank);
    }
  }
}

void StackCollector::Add(NodeIndex node, const v1::StacksCaptured& report) {
  const auto found = awaited_.find(node);
  if (!deadline_ || report.capture() != number_ || found == awaited_.end()) return;
  const Result<stacks::Capture> capture = stacks::ParseDocument(report.document());
  if (capture) {
    builder_.Add(*capture);
  } else {
    AddWithout(found->second, "what its agent sent " + capture.error().message);
  }
  awaited_.erase(found);
}

void StackCollector::Lose(NodeIndex node, const std::string& why) {
  const auto found = awaited_.find(node);
  if (!deadline_ || found == awaited_.end()) return;
  AddWithout(found->second, IsPrintable(why) ? why : Printable(why));
  awaited_.erase(found);
}

void StackCollector::AddWithout(const Awaited& node, const std::string& why) {
  for (const auto& [instance, rank] : node.ranks) {
    builder_.Add({.node = node.name,
                  .instance = instance,
                  .rank = rank,
                  .pid = 0,
                  .is_child = false,
                  .command = {},
                  .tool = {},
                  .trouble = why},
                 {});
  }
}

std::optional<stacks::Capture> StackCollector::TakeWhenDue(Monotonic now) {
  if (!deadline_ || (!awaited_.empty() && now < *deadline_)) return std::nullopt;
  for (const auto& [index, node] : awaited_) AddWithout(node, "its node did not answer within --stack-timeout");
  awaited_.clear();
  deadline_.reset();
  stacks::Capture capture = builder_.Take();
  capture.number = number_;
  capture.reason = reason_;
  capture.time_ns = began_.since_epoch.count();
  return capture;
}

RanksOfInstances GetRanksOfInstances(const JobState& job) {
  RanksOfInstances ranks;
  for (const InstanceState& instance : job.instances) ranks[instance.name] = {instance.first_rank, instance.ranks};
  return ranks;
}

StacksCaptured SummarizeStacks(const stacks::Capture& capture, std::string path, const RanksOfInstances& instances) {
  const stacks::Grouping grouping = stacks::GroupStacks(capture);
  std::set<Rank> culprits;
  const std::optional<stacks::Outlier> outlier = stacks::FindOutlier(capture, grouping);
  if (outlier) {
    for (const uint32_t index : outlier->processes) {
      const stacks::ProcessRow& process = capture.processes[index];
      const auto found = instances.find(capture.Text(process.instance));
      if (process.rank == stacks::kNone || found == instances.end()) continue;
      const auto [first, count] = found->second;
      const bool is_of_job = process.rank >= Value(first) && process.rank - Value(first) < count;
      if (is_of_job) culprits.insert(Rank{process.rank});
      if (!is_of_job && count == 1) culprits.insert(first);
    }
  }
  return {.capture = capture.number,
          .ranks_asked = static_cast<uint32_t>(grouping.asked.size()),
          .ranks_answered = static_cast<uint32_t>(grouping.answered.size()),
          .path = std::move(path),
          .summary = stacks::OneLine(capture, grouping),
          .culprits = {culprits.begin(), culprits.end()},
          .where = outlier ? outlier->where : std::string()};
}

}  // namespace aimaster
