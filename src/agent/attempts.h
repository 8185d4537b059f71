// Attempts: all lives of all instances that this node knows, by number. It turns the master's orders into orders for
// one attempt, and it is where "doing it twice does no harm" is seen to: what is on disk decides, not what we remember.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/attempt_life.h"
#include "agent/mpi_launch.h"
#include "agent/stack_order.h"
#include "agent/timer.h"
#include "aimaster/v1/agent.pb.h"

namespace aimaster::agent {

struct AttemptsOptions {
  std::string job_id;  // empty: not known
  std::string node_name;
  std::string node_directory;  // nodes/<node> of the job directory
  std::string lease;           // the node's lease file
  std::string log_root;        // where output goes when the job does not say; empty: the attempt's directory
  std::string shim_path;
  std::string boot_id;
  std::string socket = {};  // through which ranks speak to the agent; empty: there is none
  MpiSurroundings mpi;
};

class Attempts : public AttemptOwner {
 public:
  struct Callbacks {
    std::function<void(v1::Report)> report;
    std::function<void(const AttemptLife&, RankEnd&)> on_rank_ended;
    std::function<void(const AttemptLife&, const RankEnd&)> report_rank_end;
    std::function<void(const AttemptLife&)> on_running;
    std::function<void(const AttemptLife&)> on_ended;
    std::function<void()> on_nameless_ended;
  };

  Attempts(boost::asio::io_context& io, AttemptsOptions options, Callbacks callbacks);
  // What is started from now on finds it in its environment.
  void SetSocket(std::string path) { options_.socket = std::move(path); }
  ~Attempts() override;

  // Takes over what earlier agents of this node left: everything that has not ended, and the last attempt of each
  // instance in any case, so that its end is told. With an error nothing is known of who lives here, and it has to be
  // called again before a master is spoken to. What can't be read is an error for the patient; for others it counts as
  // damaged, and what lives behind it is ended.
  Status AdoptAll(bool patient);

  // False: it has ended already, or never will start.
  bool Start(const v1::StartInstance& start, const v1::JobConfig& job, uint64_t epoch);
  void Stop(const v1::StopInstance& stop);
  void StopAll(StopReason reason, bool at_once);
  void SignalAll(int signal);
  // True as long as some rank is dead and its exit is not reported.
  bool DrainExits();
  void CountMpiRanks();  // AttemptLife::CountMpiRanks
  void ReapChildren();

  std::vector<AttemptKey> Live() const;
  // Nothing lives here any more, also nothing that has no name.
  bool IsIdle() const;
  std::vector<LiveRank> LiveRanks() const;
  std::vector<StackTarget> StackTargets() const;  // the same, with what taking their stacks needs
  // The greatest round of those that live here; none: nobody does.
  std::optional<uint32_t> Round() const;
  // Of a life that is known, and may have ended; null: it is not.
  const Claim* ClaimOf(AttemptKey key) const;
  const Claim* ClaimOf(const std::string& instance_name, uint32_t attempt) const;
  Status HasDescriptors() const override;

 private:
  // Which life of which instance, where only the instance's name is known and not its number.
  using Place = std::pair<std::string, uint32_t>;
  struct Lodging {
    Place place;
    bool is_last = false;  // of its instance
    Document<Claim> claim;
  };
  struct Order {
    v1::StartInstance start;
    v1::JobConfig job;
    uint64_t epoch = 0;
  };
  // Sees a nameless attempt out. Nobody can be told of it: what is told has to name the instance.
  class NamelessOwner;

  boost::asio::io_context& io() override { return io_; }
  const std::string& boot_id() const override { return options_.boot_id; }
  const std::string& shim_path() const override { return options_.shim_path; }
  std::set<pid_t> LiveShims() const override;
  std::optional<int> WaitStatus(pid_t pid) override;
  void OnRankEnded(const AttemptLife& attempt, RankEnd& end) override { callbacks_.on_rank_ended(attempt, end); }
  void ReportRankEnd(const AttemptLife& attempt, const RankEnd& end) override {
    callbacks_.report_rank_end(attempt, end);
  }
  void Report(v1::Report report) override { callbacks_.report(std::move(report)); }
  void OnRunning(const AttemptLife& attempt) override { callbacks_.on_running(attempt); }
  void OnEnded(const AttemptLife& attempt) override;

  AttemptDirectory DirectoryOf(const Place& place) const;
  Result<std::vector<Lodging>> FindLodgings() const;
  Result<std::vector<Place>> FindHomeless(const std::vector<Lodging>& lodgings) const;
  void TakeOver(const Lodging& lodging);
  void TakeOverDamaged(const Lodging& lodging);
  void EndNameless(const Place& place);

  AttemptLife& Add(AttemptDirectory directory, Claim claim);
  AttemptLife& Adopt(AttemptDirectory directory, Claim claim);
  // Who lives, or lived, where an order points to and was not known; null when nobody ever did. `claim`: what the order
  // itself says, for when nothing else can be read.
  AttemptLife* LookUp(Claim claim);
  bool HasLived(const AttemptDirectory& directory) const;
  Claim MakeClaim(const v1::StartInstance& start, const v1::JobConfig& job, uint64_t epoch) const;
  void Launch(const v1::StartInstance& start, const v1::JobConfig& job, Claim claim);
  bool IsInTheWay(AttemptKey key, const Place& place) const;
  void EndEarlier(AttemptKey key);
  const AttemptLife* FindLater(AttemptKey key) const;
  void RefuseAsTooLate(AttemptKey key, AttemptKey later);
  void AfterAnEnd();
  // Of an attempt that was stopped before its start came.
  void ReportNeverStarted(AttemptKey key);
  std::string NameOf(const v1::StopInstance& stop) const;
  void ForgetEndedBefore(AttemptKey key);

  boost::asio::io_context& io_;
  AttemptsOptions options_;
  Callbacks callbacks_;
  std::map<AttemptKey, std::unique_ptr<AttemptLife>> attempts_;
  // Left by an earlier agent, with documents that don't say which instance of the job it is. They are ended; until then
  // no successor starts.
  std::unique_ptr<AttemptOwner> nameless_owner_;
  std::map<Place, std::unique_ptr<AttemptLife>> nameless_;
  std::map<AttemptKey, Order> waiting_;  // starts, for the end of an earlier attempt of the instance
  Timer after_an_end_timer_;
  size_t own_descriptors_ = 0;     // open while nothing runs here
  std::map<pid_t, int> statuses_;  // of shims that waitpid has told us of and nobody has asked for
};

}  // namespace aimaster::agent
