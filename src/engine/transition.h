// Transition: one step of the engine, being taken. It holds the job, the moment and the result that is being built; the
// moves a job can make are its functions, and the On() functions say, for every phase, what an input means there.
//
// The moves live in seven files by what they are about: coming up (transition_start.cc), failing
// (transition_failure.cc), hanging (transition_hang.cc), communication (transition_communication.cc), going down
// (transition_stop.cc), one instance's restart beside the others (transition_alone.cc), and call stacks
// (transition_stacks.cc). One file with all of them was rejected: it would be the file that everybody has to read to
// change anything.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/limits.h"

namespace aimaster {

// How long we wait beyond the grace until a stop is escalated, and how long we go on before an instance counts as
// unkillable: the grace, twice the time in which a silent node is recovered, and this.
inline constexpr Duration kStopSlack = std::chrono::seconds{5};
inline constexpr Duration kUnkillableAfter = std::chrono::seconds{30};
// However long a core takes to write or a node to answer, a failure is judged after this.
inline constexpr Duration kCollectCap = std::chrono::seconds{120};
// A torchrun looks at its processes every 5 s unless told otherwise. One whose processes lost a peer may therefore end
// before the one whose process the peer was.
inline constexpr Duration kTorchrunsAreSlow = std::chrono::seconds{6};
inline constexpr uint32_t kPortReservationsMax = 5;

class Transition {
 public:
  Transition(JobState& job, const Moment& now) : job_(job), now_(now) {}

  // What each input means. An input that can't matter in a phase changes nothing.
  void On(const JobSubmitted& input);
  void On(const MasterStarted& input);
  void On(const NodeJoined& input);
  void On(const NodeDenied& input);
  void On(const NodeLost& input);
  void On(const PortReserved& input);
  void On(const PortRefused& input);
  void On(const InstanceStarted& input);
  void On(const InstanceReady& input);
  void On(const RankSucceeded& input);
  void On(const RankFailed& input);
  void On(const InstanceEnded& input);
  void On(const EvidenceCollected& input);
  void On(const FailureJudged& input);
  void On(const StopRequested& input);
  void On(const RetryableErrorsAdded& input);
  void On(const StacksRequested& input);
  void On(const StacksCaptured& input);
  void On(const HangFound& input);
  void On(const CommunicationJudged& input);
  void On(const CustomMessageSent& input);
  void On(const CheckpointTold& input);
  void On(const Tick& input);

  StepResult TakeResult();

 private:
  // Coming up.
  void Acquire();
  void StartRound();
  void ReserveNextPorts();
  void TakePorts(NodeIndex node, const std::vector<uint16_t>& ports);
  void StartAllInstances();
  void StartTogether(InstanceIndex index);
  std::string RoundStartText() const;
  void BeginAttempt(InstanceIndex index);
  void FinishStartStage();
  void MarkReady(InstanceIndex index);
  void FinishReadyStage();
  void FailStart(std::string fault, std::string message, std::optional<InstanceIndex> instance = std::nullopt);

  // Failing.
  void AddFailure(const RankFailure& failure);
  void WaitForOtherTorchruns(const RankFailure& failure);
  void OpenCollection(const RankFailure& first);
  void Collect(const RankFailure& first);
  void TellFailed(const RankFailure& failure);
  void CloseCollectionWhenComplete();
  void AskForJudgement();
  void Decide(const Judgement& judgement);
  void CarryOut(const Judgement& judgement, Ruling ruling);
  void RestartJob(const Judgement& judgement, const std::string& summary);
  void Pause(const Ruling& ruling);
  bool ShouldIsolate(const Judgement& judgement, std::vector<std::string>& reasons);
  void LoseRanksOf(NodeIndex node, const std::string& reason);
  void LoseSilentRanks(InstanceIndex index, const std::string& reason, bool node_lost);

  // Hanging.
  bool IsLookedFor(const HangFound& hang) const;
  void TellAdvancing(const HangFound& hang);
  void BeginHang(const HangFound& hang);
  void DecideHang(const StacksCaptured* stacks);
  Judgement JudgeHang(const HangFound& hang, const StacksCaptured* stacks) const;
  std::string FaultOf(const HangFound& hang) const;
  std::string SilenceText(const HangFound& hang) const;
  std::string ExitHangText(const HangFound& hang) const;
  std::string CulpritsText(const std::vector<Rank>& culprits, const std::string& where) const;
  std::vector<Rank> RunningRanks() const;
  std::string NodeText(NodeIndex node) const;
  bool HasPlaces(const CommunicationVerdict& verdict) const;
  void BlameCommunication(Judgement& judgement) const;
  std::string HangText(const HangFound& hang) const;
  void TellCommunication(const std::vector<CommunicationVerdict>& verdicts);
  std::string CommunicationText(const CommunicationVerdict& verdict) const;
  FailureDetail HangDetail(const Judgement& judgement, Rank rank) const;
  void KeepRecord(const Judgement& judgement, const std::string& summary);

  // One instance alone.
  void DecideApart(const FailureJudged& judged);
  void RestartTheUnkept(std::set<InstanceIndex>& decided);
  Judgement AboutInstance(InstanceIndex index, std::string fault, std::string message) const;
  void RestartAlone(const Judgement& judgement, Ruling ruling, const Moment& began);
  void Isolate(NodeIndex index, const std::string& reason);
  void StopAlone(InstanceIndex index, bool at_once);
  void ContinueAlone(InstanceIndex index);
  void PauseAlone(InstanceIndex index, const Ruling& ruling);
  bool StartWhereItsSlotIs(InstanceIndex index);
  bool WouldMove(InstanceIndex index) const;
  void AskForNodes();
  void StartWaiting();
  void Seat(InstanceIndex index, NodeIndex node);
  void StartAlone(InstanceIndex index);
  void GoOn();
  void OnDeadlines();
  void OnDeadlineOf(InstanceIndex index);
  void FailStartAlone(const Judgement& judgement);
  void RestartForMove(InstanceIndex index);
  void EscalateStopAlone(InstanceIndex index);
  void FailNow(std::string reason_code, std::string reason_message);
  void EndOwnLives(RestartResult result);
  void CloseOwnRecord(InstanceIndex index, RestartResult result);
  OwnLife& Own(InstanceIndex index);
  void SetDeadline(InstanceIndex index, std::optional<Monotonic> deadline);
  void SetRenewal(InstanceIndex index, Renewal renewal);

  // Going down.
  void StopAll(StopPurpose purpose);
  void StopLiveInstances(bool at_once);
  void ContinueWhenStopped();
  bool MustWait();
  bool IsWorkDone() const;
  const RankFailure* FailedMpiHost() const;
  void TakeBackSuccess(const RankFailure& failure);
  bool IsDoneForGood(InstanceIndex index) const;
  void SucceedWhenAllHave();
  void Succeed();
  void ReplaceNodes();
  void ReplaceSlot(uint32_t slot);
  bool FillSlots();
  void Place(uint32_t slot, NodeIndex node);
  void EscalateStop();
  // Beyond it, what is still there can't be killed.
  Duration StopPatience() const;
  std::optional<Duration> CloseRecord(RestartResult result);
  void End(JobStatus status, std::string reason_code, std::string reason_message, int exit_code);

  // Stacks.
  bool CaptureStacksOf(std::string reason);
  void GiveUpOnStacks();

  // Small things that all of them need.
  InstanceState* Current(InstanceIndex index, Attempt attempt);
  InstanceState& Changed(InstanceIndex index);
  RoundState& ChangedRound();
  void SetLive(InstanceIndex index, bool live);
  void SetStatus(InstanceIndex index, InstanceStatus status);
  void SetRanksSucceeded(InstanceIndex index, uint32_t count);
  bool All(uint32_t count) const { return count == job_.instances.size(); }
  void ClearFailures();
  bool AllSlotsFilled();
  std::string NamesOfLive() const;
  bool NodeUsable(NodeIndex node) const;
  NodeIndex NextNodeIndex() const;
  // Whether ranks are there, and may fail: as opposed to coming up, going down and having ended.
  bool RoundIsUp() const;
  NodeIndex NodeOfRankZero() const;
  std::string RankText(Rank rank) const;

  // Stages of the round that is running, or of a failure whose round isn't known yet.
  std::vector<StageTime>& Stages();
  void BeginStage(Stage stage) { BeginStage(stage, now_); }
  void BeginStage(Stage stage, Moment start);
  void EndStage(Stage stage);
  bool IsOpen(Stage stage) const;  // of the round
  void EndAllStages();
  void KeepStagesInThisRound();

  void Act(Action action) { result_.actions.push_back(std::move(action)); }
  void Tell(std::string type, std::string subject, std::string message);
  void Record(std::string kind, std::string summary, std::vector<std::string> reasons);

  JobState& job_;
  const Moment now_;
  StepResult result_;
  std::set<InstanceIndex> changed_instances_;
  std::set<size_t> changed_rounds_;
  std::set<size_t> changed_records_;
  std::set<size_t> changed_failures_;
};

}  // namespace aimaster
