// Network: the connections between agents and masters. Within one, bytes keep their order, as TCP promises; between
// two, they don't. A cut holds back what is under way, as TCP does, until the cut ends or somebody hangs up; a break
// loses it, and it may be that only one end hears of that.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/event_queue.h"
#include "sim/random.h"

namespace aimaster::sim {

enum class End { kAgent, kMaster };

// Whom a connection joins: numbers of processes, that are never used again.
struct Wire {
  uint64_t id = 0;
  uint32_t node = 0;
  uint64_t agent = 0;
  uint64_t master = 0;
};

class Network {
 public:
  // What arrives, at whom.
  class Ends {
   public:
    virtual ~Ends() = default;
    virtual void OnDialled(const Wire& wire) = 0;      // the master's machine has been reached
    virtual void OnUnreachable(const Wire& wire) = 0;  // told to the agent
    virtual void OnBytes(const Wire& wire, End to, const std::string& bytes) = 0;
    virtual void OnOpened(const Wire& wire) = 0;  // told to the agent
    virtual void OnClosed(const Wire& wire, End to) = 0;
  };

  Network(EventQueue& queue, Random& random, Ends& ends, Duration delay)
      : queue_(queue), random_(random), ends_(ends), delay_(delay) {}

  uint64_t Dial(uint32_t node, uint64_t agent, uint64_t master);
  void Accept(uint64_t id);  // the master's answer to OnDialled
  void Refuse(uint64_t id);  // there is none
  void Send(uint64_t id, End from, std::string bytes);
  // This end wants no more; the other one hears of it after what was sent before.
  void Close(uint64_t id, End from);
  // A process has died: its machine closes its connections; a machine that died can't.
  void Drop(End end, uint64_t process, bool silently);

  // Loses what is under way.
  void Break(uint64_t id, bool agent_hears, bool master_hears);
  void Cut(uint32_t node) { ++cuts_[node]; }
  void Heal(uint32_t node);
  bool IsCut(uint32_t node) const;
  void SetDelay(Duration delay) { delay_ = delay; }
  Duration delay() const { return delay_; }
  const Wire* Find(uint64_t id) const;
  // Of those that exist.
  std::vector<uint64_t> Ids() const;

 private:
  struct Item {
    enum class Kind { kOpened, kBytes, kClosed } kind;
    std::string bytes;
  };
  struct Direction {
    std::deque<Item> items;
    Duration last{};
    bool is_open = true;  // the sender has not hung up, and the receiver still listens
  };
  struct Connection {
    Wire wire;
    bool accepted = false;  // by the master
    Direction to_agent, to_master;
    Direction& To(End end) { return end == End::kAgent ? to_agent : to_master; }
  };

  void Push(Connection& connection, End to, Item item);
  void Schedule(Connection& connection, End to);
  void Deliver(uint64_t id, End to);
  void ForgetIfDone(uint64_t id);

  EventQueue& queue_;
  Random& random_;
  Ends& ends_;
  Duration delay_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, Connection> connections_;
  std::map<uint64_t, Wire> unanswered_;  // dialled, and the agent knows of no answer
  std::map<uint32_t, int> cuts_;
};

}  // namespace aimaster::sim
