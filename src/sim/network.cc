#include "sim/network.h"

#include <algorithm>
#include <utility>

namespace aimaster::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDialTimeout = 5s;

End Other(End end) { return end == End::kAgent ? End::kMaster : End::kAgent; }

}  // namespace

uint64_t Network::Dial(uint32_t node, uint64_t agent, uint64_t master) {
  const uint64_t id = ++last_id_;
  Connection& connection = connections_[id];
  connection.wire = {id, node, agent, master};
  queue_.After(random_.Delay(delay_), [this, id] {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const Wire wire = found->second.wire;
    if (!IsCut(wire.node)) {
      ends_.OnDialled(wire);
    }
  });
  unanswered_[id] = connection.wire;
  queue_.After(kDialTimeout, [this, id] {
    const auto unanswered = unanswered_.extract(id);
    if (!unanswered) return;
    Close(id, End::kAgent);
    ends_.OnUnreachable(unanswered.mapped());
  });
  return id;
}

void Network::Accept(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  found->second.accepted = true;
  Push(found->second, End::kAgent, {Item::Kind::kOpened, {}});
}

void Network::Refuse(uint64_t id) {
  const auto found = connections_.extract(id);
  if (!found) return;
  queue_.After(random_.Delay(delay_), [this, wire = found.mapped().wire] { ends_.OnUnreachable(wire); });
}

void Network::Send(uint64_t id, End from, std::string bytes) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.To(Other(from)).is_open) return;
  Push(found->second, Other(from), {Item::Kind::kBytes, std::move(bytes)});
}

void Network::Close(uint64_t id, End from) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (!connection.accepted) {
    connections_.erase(found);
    return;
  }
  Direction& out = connection.To(Other(from));
  Direction& in = connection.To(from);
  in.is_open = false;
  in.items.clear();
  if (out.is_open) {
    Push(connection, Other(from), {Item::Kind::kClosed, {}});
    out.is_open = false;
  }
  ForgetIfDone(id);
}

void Network::Drop(End end, uint64_t process, bool silently) {
  for (const uint64_t id : Ids()) {
    Connection& connection = connections_.at(id);
    if ((end == End::kAgent ? connection.wire.agent : connection.wire.master) != process) continue;
    if (silently) {
      connection.To(end).is_open = false;
      connection.To(end).items.clear();
    } else if (!connection.accepted && end == End::kMaster) {
      const Wire wire = connection.wire;
      connections_.erase(id);
      queue_.After(random_.Delay(delay_), [this, wire] { ends_.OnUnreachable(wire); });
    } else {
      Close(id, end);
    }
  }
}

void Network::Break(uint64_t id, bool agent_hears, bool master_hears) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.accepted) return;
  Connection& connection = found->second;
  for (const End to : {End::kAgent, End::kMaster}) {
    Direction& direction = connection.To(to);
    // What had arrived, but was not read yet, is still read.
    while (!direction.items.empty() && random_.Chance(0.7)) direction.items.pop_back();
    if (direction.is_open && (to == End::kAgent ? agent_hears : master_hears)) {
      Push(connection, to, {Item::Kind::kClosed, {}});
    }
    direction.is_open = false;
  }
}

void Network::Heal(uint32_t node) {
  if (--cuts_[node] > 0) return;
  for (auto& [id, connection] : connections_) {
    if (connection.wire.node != node) continue;
    for (const End to : {End::kAgent, End::kMaster}) {
      for (size_t i = 0; i < connection.To(to).items.size(); ++i) Schedule(connection, to);
    }
  }
}

bool Network::IsCut(uint32_t node) const {
  const auto found = cuts_.find(node);
  return found != cuts_.end() && found->second > 0;
}

const Wire* Network::Find(uint64_t id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second.wire;
}

std::vector<uint64_t> Network::Ids() const {
  std::vector<uint64_t> ids;
  for (const auto& [id, connection] : connections_) ids.push_back(id);
  return ids;
}

void Network::Push(Connection& connection, End to, Item item) {
  connection.To(to).items.push_back(std::move(item));
  Schedule(connection, to);
}

void Network::Schedule(Connection& connection, End to) {
  Direction& direction = connection.To(to);
  direction.last = std::max(direction.last, queue_.now() + random_.Delay(delay_));
  queue_.After(direction.last - queue_.now(), [this, id = connection.wire.id, to] { Deliver(id, to); });
}

void Network::Deliver(uint64_t id, End to) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || IsCut(found->second.wire.node)) return;
  Direction& direction = found->second.To(to);
  if (direction.items.empty()) return;
  const Wire wire = found->second.wire;
  const Item item = std::move(direction.items.front());
  direction.items.pop_front();
  switch (item.kind) {
    case Item::Kind::kOpened:
      unanswered_.erase(id);
      ends_.OnOpened(wire);
      break;
    case Item::Kind::kBytes:
      ends_.OnBytes(wire, to, item.bytes);
      break;
    case Item::Kind::kClosed:
      found->second.To(Other(to)).is_open = false;
      ends_.OnClosed(wire, to);
      break;
  }
  ForgetIfDone(id);
}

void Network::ForgetIfDone(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection& connection = found->second;
  const bool done = connection.accepted && !connection.to_agent.is_open && !connection.to_master.is_open &&
                    connection.to_agent.items.empty() && connection.to_master.items.empty();
  if (done) connections_.erase(found);
}

}  // namespace aimaster::sim
