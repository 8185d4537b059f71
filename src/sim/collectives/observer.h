// Observer: makes an Observation of a cluster, as much of it as the scenario lets it see.
//
// The states of a real job are collected over some time, node after node, and contradict each other a little. So ranks
// are looked at one by one, whenever the caller wants, before it is put together.
#pragma once

#include <cstdint>
#include <vector>

#include "c4d/observation.h"
#include "sim/collectives/cluster.h"
#include "sim/collectives/scenario.h"

namespace aimaster::sim::collectives {

class Observer {
 public:
  Observer(const Cluster& cluster, const Sight& sight);

  void Collect(uint32_t rank);
  c4d::Observation Take();

 private:
  struct Seen {
    c4d::MemberState state;
    std::vector<c4d::Operation> operations;
  };
  c4d::Operation Describe(const Outstanding& operation) const;
  uint64_t ProgressOf(uint32_t rank, const Member& member) const;
  Duration Age(Duration since) const;

  const Cluster& cluster_;
  const Sight& sight_;
  c4d::Observation observation_;
  std::vector<std::vector<Seen>> seen_;  // by group, then position
};

// All at once.
c4d::Observation ObserveAll(const Cluster& cluster, const Sight& sight);
// Node by node, while the cluster goes on for `collecting`.
c4d::Observation ObserveOver(Cluster& cluster, const Sight& sight, Duration collecting);

}  // namespace aimaster::sim::collectives
