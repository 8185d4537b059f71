#include "journal/replay.h"

#include <algorithm>
#include <utility>

#include "engine/engine.h"
#include "journal/compare.h"

namespace aimaster {
namespace {

constexpr const char* kPartsWay = "parts";  // ends the reading; never shown

class Replayer {
 public:
  Replayer(Database& database, const ReplayOptions& options) : database_(database), options_(options) {}

  Result<Replay> Run() {
    const Result<int64_t> last = LastInput(database_);
    if (!last) return std::unexpected(last.error());
    Result<std::vector<MasterLife>> lives = ReadMasterLives(database_);
    if (!lives) return std::unexpected(lives.error());
    replay_.lives = std::move(*lives);
    replay_.recorded_inputs = *last;
    const Status read =
        ReadInputs(database_, 0, *last, [this](RecordedInput&& recorded) { return Take(std::move(recorded)); });
    if (!read && read.error().message != kPartsWay) return std::unexpected(read.error());
    replay_.status = engine_.job().status;
    if (replay_.ending == ReplayEnding::kSame && !options_.parameters) CompareState();
    return std::move(replay_);
  }

 private:
  Status Take(RecordedInput&& recorded) {
    replay_.rules.insert(recorded.rules);
    if (const auto* judged = std::get_if<FailureJudged>(&recorded.input.event)) CompareJudgement(recorded, *judged);
    if (options_.parameters && !parted_by_itself_) {
      const StepResult own = by_own_parameters_.Step(recorded.input);
      parted_by_itself_ = !LeadToTheSame(own.decisions, recorded.decisions);
    }
    if (auto* submitted = std::get_if<JobSubmitted>(&recorded.input.event); submitted && options_.parameters) {
      submitted->spec.fault_tolerance = *options_.parameters;
    }
    const Round round = engine_.job().round;
    StepResult result = engine_.Step(recorded.input);
    ++replay_.replayed_inputs;
    if (recorded.decisions.empty() && result.decisions.empty()) return {};
    const bool parts = !LeadToTheSame(recorded.decisions, result.decisions);
    if (parts) {
      replay_.ending = ReplayEnding::kParts;
      replay_.parts_anyway = parted_by_itself_;
    } else if (recorded.decisions != result.decisions && replay_.ending == ReplayEnding::kSame) {
      replay_.ending = ReplayEnding::kWords;
    }
    replay_.inputs.push_back({recorded.number, std::string(EventKind(recorded.input.event)), recorded.input.at, round,
                              recorded.epoch, std::move(recorded.decisions), std::move(result.decisions)});
    return parts ? Fail(ErrorKind::kEnvironment, kPartsWay) : Status();
  }

  // The engine has the failures that the detector was shown, unless there were too many to keep.
  void CompareJudgement(const RecordedInput& recorded, const FailureJudged& judged) {
    const JobState& job = engine_.job();
    if (judged.apart ? !options_.judge_apart : !options_.judge) return;
    if (job.phase != Phase::kJudging || judged.judgement_number != job.judgement_number) return;
    if (job.failures.empty() || job.failures_dropped > 0) return;
    const auto compare = [&](const Judgement& then, const Judgement& now) {
      if (now != then) replay_.judgements.push_back({recorded.number, recorded.input.at, job.round, then, now});
    };
    if (!judged.apart) return compare(judged.judgement, options_.judge(job));
    const std::vector<Judgement> all_now = options_.judge_apart(job);
    const auto compare_one = [&](const Judgement& then) {
      const auto now = std::ranges::find(all_now, then.root_instance, &Judgement::root_instance);
      if (now != all_now.end()) compare(then, *now);
    };
    compare_one(judged.judgement);
    for (const Judgement& other : judged.others) compare_one(other);
  }

  // Only where the state is that of the last input that was read: a running job's may be further.
  void CompareState() {
    const Result<std::optional<RecordedState>> state = ReadState(database_);
    if (!state || !*state || (*state)->input != replay_.recorded_inputs) return;
    const Result<int64_t> last = LastInput(database_);
    if (!last || *last != replay_.recorded_inputs) return;
    replay_.state_difference = StateDifference((*state)->state, engine_.job());
  }

  Database& database_;
  const ReplayOptions& options_;
  Engine engine_;
  Engine by_own_parameters_;  // the check that runs beside a "what if"
  bool parted_by_itself_ = false;
  Replay replay_;
};

}  // namespace

Result<Replay> ReplayJob(Database& database, const ReplayOptions& options) { return Replayer(database, options).Run(); }

}  // namespace aimaster
