// RankLife: one training process of one attempt, and how its life will go. It knows nothing of the product.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/attempt_files.h"
#include "sim/process.h"

namespace aimaster::sim {

class World;
struct SimNode;
class SimShim;

// Why a rank is dead. What the checkers ask: who decided that?
enum class Death {
  kItsOwn,    // as its plan said, or by somebody who is not us
  kOrder,     // a master ordered its attempt to be stopped
  kJobOver,   // its agent heard that the job has ended, or goes on without this node
  kOrphaned,  // no master for too long
  kShimDied,  // with its parent
  kSwept,     // left over by a dead shim
  kNodeDied,
};
std::string_view Name(Death death);

struct RankLife {
  RankLife(World& world, SimNode& node, agent::AttemptKey key, uint32_t rank, uint32_t local, uint64_t shim);

  void Begin();  // executed
  void Signal(int number, Death why);
  void Kill(int number, Death why) { Die(std::nullopt, number, false, why); }
  void Fail();  // of its own
  void Hang();
  bool is_stuck() const;  // can't be killed just now

  World& world;
  SimNode& node;
  const agent::AttemptKey key;
  const uint32_t rank, local;
  const uint64_t shim;
  const uint32_t boot;
  Process process;
  bool is_alive = false;
  bool hangs = false;  // neither an end nor a word comes of it
  bool has_printed = false;
  bool is_dumping = false;
  bool was_signalled = false;  // by its shim
  bool escapes = false;
  bool ignores_term = false;
  Duration stuck_until{};
  Duration was_alone_for{};  // without a master, when its shim began to stop it for that
  std::string words;         // the rule that its last words match

  // Once dead.
  Death death{};
  std::optional<int> code, signal;
  bool dumped_core = false;
  bool was_signalled_before_end = false;

 private:
  void Die(std::optional<int> exit_code, std::optional<int> exit_signal, bool core, Death why);
  void Succeed();
  void Print();
  int signalled_ = 0;
};

}  // namespace aimaster::sim
