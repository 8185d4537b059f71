// SimMaster: one master process. Everything that it decides is the real Conductor; around it, this is the loop of
// master.cc: a journal that is written by another thread, timers, the watch over master.json. It can die between any
// two effects, and in the middle of a commit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "master/conductor.h"
#include "sim/process.h"

namespace aimaster::sim {

class World;

class SimMaster {
 public:
  SimMaster(World& world, uint64_t id);

  void Begin();
  void Stop(bool at_once);  // a person
  void OnNodeDenied(const std::string& reason);
  void OnNodeLost(NodeIndex node, const std::string& reason);

  // From the network.
  void OnBytes(uint64_t wire, const std::string& bytes);
  void OnClosed(uint64_t wire);

  // It has died, or its machine has: what was on its way to the disk is there, or it is not.
  void OnDeath();

  uint64_t id() const { return id_; }
  Epoch epoch() const { return epoch_; }
  bool is_listening() const { return conductor_.has_value(); }
  Process process;

 private:
  void Lead();
  Moment Now() const;
  template <typename Call>
  void Drive(Call call);
  void Do(const Effect& effect);
  void Transmit(uint64_t wire, const std::string& bytes);
  void WriteSoon();
  void Write();
  void Commit();
  void OnAppended(const Status& status);
  void ArmDeadline();
  void Watch();
  bool LeaveIfFenced();
  void Leave(int status, const std::string& why);
  void Say(const std::string& text) const;

  World& world_;
  const uint64_t id_;
  Epoch epoch_{};
  Duration clock_shift_{};
  std::optional<Conductor> conductor_;
  std::string spec_;
  bool write_posted_ = false, append_waits_ = false;
  struct Writing {
    uint64_t number = 0;
    JournalBatch batch;
    bool committed = false;
    Status status;
  };
  std::optional<Writing> writing_;
  uint64_t writes_ = 0;
  std::set<std::string> sent_;  // by a break
  std::optional<Monotonic> armed_;
  Alarm deadline_{process}, append_again_{process};
};

}  // namespace aimaster::sim
