#include "sim/collectives/story.h"

#include <algorithm>
#include <set>

namespace aimaster::sim::collectives {
namespace {

constexpr size_t kShown = 12;  // ranks, and operations of one

std::string Text(const std::vector<Rank>& ranks) {
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i) text += " " + std::to_string(Value(ranks[i]));
  if (ranks.size() > kShown) text += " ... (" + std::to_string(ranks.size()) + " of them)";
  return text;
}

std::string_view Name(HostState state) {
  switch (state) {
    case HostState::kRuns:
      return "runs";
    case HostState::kBusy:
      return "is busy";
    case HostState::kQueueFull:
      return "waits for room in its queue";
    case HostState::kDrains:
      return "waits for its device";
    case HostState::kInside:
      return "is inside an operation";
    case HostState::kStopped:
      return "has stopped";
  }
  return "host";
}

std::string TellRank(const Cluster& cluster, uint32_t rank, const RankTruth& truth) {
  std::string text = "rank " + std::to_string(rank) + ", step " + std::to_string(cluster.StepAt(rank)) + ": its host " +
                     std::string(Name(cluster.HostOf(rank)));
  if (truth.is_missed()) text += "; missed for " + FormatDuration(truth.missed);
  if (truth.waits) text += "; waits itself";
  text += "\n";
  for (size_t part = 0; part < kParts; ++part) {
    const uint32_t group = cluster.layout().GroupOf(rank, static_cast<Part>(part));
    if (group == kNone) continue;
    const Member& member = cluster.MemberOf(rank, group);
    text += "  group " + std::to_string(group) + " " + cluster.layout().NameOf(group) + ": issued " +
            std::to_string(member.issued) + ", started " + std::to_string(member.started) + ", completed " +
            std::to_string(member.completed) + "\n";
    for (size_t i = 0; i < std::min(member.outstanding.size(), kShown); ++i) {
      const Outstanding& o = member.outstanding[i];
      text += "    " + std::to_string(o.sequence) + " " + std::string(c4d::Name(o.call.function));
      if (o.call.count != c4d::kUnknown) text += " of " + std::to_string(o.call.count) + " " + kTypes[o.call.type];
      if (o.call.peer != kNone) text += " with rank " + std::to_string(o.call.peer);
      text += ", called " + FormatDuration(cluster.now() - o.issued_at) + " ago, ";
      text += o.is_started ? "begun " + FormatDuration(cluster.now() - o.started_at) + " ago" : "not begun";
      const Meeting* meeting = o.is_started ? cluster.FindMeeting(rank, o) : nullptr;
      if (meeting != nullptr) {
        text += ", " + std::to_string(meeting->arrived) + " of " + std::to_string(cluster.SizeOf(o)) + " have come";
        if (meeting->stuck >= 0) text += ", stuck";
        if (meeting->differs) text += ", calls differ";
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace

std::string TellFaults(const Cluster& cluster) {
  std::string text;
  for (const Fault& fault : cluster.faults()) {
    text += std::string(Name(fault.kind)) + " of rank " + std::to_string(fault.rank);
    if (fault.fired) {
      text += " at " + FormatDuration(*fault.fired) + " in step " + std::to_string(fault.step) + ", group " +
              std::to_string(fault.group) + " " + cluster.layout().NameOf(fault.group) + ", operation " +
              std::to_string(fault.sequence);
      if (fault.others_complete) text += "; the others got theirs";
      if (fault.shows_behind) text += "; progress would tell";
    } else {
      text += " without a moment";
    }
    text += "\n";
  }
  return text;
}

std::string TellTruth(const Circumstances& at) {
  std::string text = "after " + FormatDuration(at.cluster.now()) + "; the longest wait is of " +
                     FormatDuration(at.after.longest_wait) + "\n";
  std::set<uint32_t> told;
  for (const Fault& fault : at.cluster.faults()) told.insert(fault.rank);
  for (uint32_t rank = 0; rank < at.after.ranks.size() && told.size() < kShown; ++rank) {
    if (at.after.ranks[rank].is_root()) told.insert(rank);
  }
  for (const Fault& fault : at.cluster.faults()) {  // and one that waits for it
    if (!fault.fired) continue;
    for (const uint32_t rank : at.cluster.layout().groups()[fault.group].members) {
      if (told.size() < kShown && told.insert(rank).second) break;
    }
  }
  for (const uint32_t rank : told) text += TellRank(at.cluster, rank, at.after.ranks[rank]);
  return text;
}

std::string TellVerdicts(const std::vector<c4d::Verdict>& verdicts, const c4d::Observation& observation) {
  if (verdicts.empty()) return "said: nothing\n";
  std::string text;
  for (const c4d::Verdict& verdict : verdicts) {
    text += "said: " + std::string(c4d::Name(verdict.kind)) + " (" + std::string(c4d::Name(verdict.level)) + ")" +
            (verdict.is_group ? ", group of" : ", ranks") + Text(verdict.ranks);
    if (verdict.communicator) {
      text += ", in group " + observation.communicators[*verdict.communicator].name + " " +
              observation.communicators[*verdict.communicator].description;
    }
    if (verdict.sequence) text += ", operation " + std::to_string(*verdict.sequence);
    if (!verdict.operation.empty()) text += " " + verdict.operation;
    if (verdict.since) text += ", for " + FormatDuration(*verdict.since);
    text += "; waiting:" + Text(verdict.waiting) + "\n";
    for (size_t i = 0; i < std::min(verdict.evidence.size(), kShown); ++i) text += "    " + verdict.evidence[i] + "\n";
  }
  return text;
}

std::string TellJudgement(const Judgement& judgement) {
  std::string text;
  for (const std::string& complaint : judgement.false_accusations) text += "FALSE: " + complaint + "\n";
  for (const std::string& complaint : judgement.misses) text += "MISSED: " + complaint + "\n";
  return text.empty() ? "right\n" : text;
}

}  // namespace aimaster::sim::collectives
