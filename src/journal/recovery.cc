#include "journal/recovery.h"

#include <utility>

#include "journal/compare.h"
#include "journal/rows.h"

namespace aimaster {
namespace {

// The program that decided on an input.
std::string ProgramOf(const std::vector<MasterLife>& lives, Epoch epoch) {
  for (const MasterLife& life : lives) {
    if (life.epoch == epoch) return life.program + " (engine " + std::to_string(life.engine) + ")";
  }
  return "an earlier version";
}

class Recovery {
 public:
  Recovery(Database& database, CrashMark& mark) : database_(database), mark_(mark) {}

  Result<Recovered> Run() {
    const Result<int64_t> last = LastInput(database_);
    if (!last) return std::unexpected(last.error());
    recovered_.inputs = *last;
    if (*last == 0) return std::move(recovered_);
    Result<std::vector<MasterLife>> lives = ReadMasterLives(database_);
    if (!lives) return std::unexpected(lives.error());
    lives_ = std::move(*lives);
    const Status last_read = ReadInputs(database_, *last - 1, *last, [this](RecordedInput&& input) -> Status {
      recovered_.last = input.input.at;
      return {};
    });
    if (!last_read) return std::unexpected(last_read.error());
    Result<std::optional<RecordedState>> state = ReadState(database_);
    if (!state) return std::unexpected(state.error());
    if (const Status done = *state ? FromState(std::move(**state)) : FromInputs(); !done) {
      return std::unexpected(done.error());
    }
    return std::move(recovered_);
  }

 private:
  Status FromState(RecordedState recorded) {
    if (recorded.input != recovered_.inputs) {
      return Fail(ErrorKind::kEnvironment,
                  "the journal is damaged: its state is behind input " + std::to_string(recorded.input) + " of " +
                      std::to_string(recovered_.inputs) + "; restore it from a copy, or submit the job anew");
    }
    Result<JobSpec> spec = ReadSubmittedSpec(database_);
    if (!spec) return std::unexpected(spec.error());
    Result<JobState> job = RestoreState(*spec, recorded.state);
    if (!job) return std::unexpected(job.error());
    if (const Status checked = Check(*spec, recorded.state); !checked) return checked;
    recovered_.engine = Engine(std::move(*job));
    return {};
  }

  // Only tells; whatever it finds, the recorded state is what counts.
  Status Check(const JobSpec& spec, const StoredState& recorded) {
    if (mark_.crash()) {
      recovered_.skipped_check = "the last master died over an input of kind " + mark_.crash()->kind +
                                 "; what was decided is taken as it was recorded, without deriving it again";
      return {};
    }
    Result<std::optional<RecordedState>> snapshot = ReadLastSnapshot(database_);
    if (!snapshot) return std::unexpected(snapshot.error());
    if (!*snapshot) return {};
    Result<JobState> before = RestoreState(spec, std::move((*snapshot)->state));
    if (!before) return std::unexpected(before.error());
    Engine engine(std::move(*before));
    if (const Status stepped = StepAll(engine, (*snapshot)->input); !stepped) return stepped;
    if (recovered_.engine_change.empty() && recovered_.checked > 0) {
      // The same decisions, and yet the engine knows something else: it will decide differently later.
      if (const std::string difference = StateDifference(recorded, engine.job()); !difference.empty()) {
        recovered_.engine_change = "this version of aimaster, " + Own() +
                                   ", derives another state from the job's history (" + difference +
                                   "); the recorded one counts";
      }
    }
    return {};
  }

  // Version 1 of the journal knows no state. What this engine makes of the inputs is all that there is, so it has to be
  // what was decided.
  Status FromInputs() {
    if (const Status stepped = StepAll(recovered_.engine, 0); !stepped) return stepped;
    if (recovered_.engine_change.empty()) return {};
    return Fail(ErrorKind::kVersion, recovered_.engine_change +
                                         "; the journal holds no state to go on from, so only the version that began "
                                         "the job can go on with it");
  }

  Status StepAll(Engine& engine, int64_t after) {
    return ReadInputs(database_, after, recovered_.inputs, [&](RecordedInput&& recorded) -> Status {
      mark_.Enter(recorded.input);
      const StepResult result = engine.Step(recorded.input);
      mark_.Leave();
      ++recovered_.checked;
      if (recovered_.engine_change.empty() && result.decisions != recorded.decisions) {
        recovered_.engine_change =
            "this version of aimaster, " + Own() + ", would have decided otherwise at input " +
            std::to_string(recorded.number) + " (" + std::string(EventKind(recorded.input.event)) +
            "): " + DescribeDecisions(result.decisions) + "; " + ProgramOf(lives_, recorded.epoch) + " decided " +
            DescribeDecisions(recorded.decisions);
      }
      return {};
    });
  }

  static std::string Own() { return "with engine " + std::to_string(kEngineVersion); }

  Database& database_;
  CrashMark& mark_;
  std::vector<MasterLife> lives_;
  Recovered recovered_;
};

}  // namespace

Result<Recovered> RecoverJob(Journal& journal, CrashMark& mark) { return Recovery(journal.database(), mark).Run(); }

}  // namespace aimaster
