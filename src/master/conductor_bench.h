// ConductorBench: what the conductor's tests share: one that is fed by hand, and its effects.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "master/conductor.h"

namespace aimaster {

using namespace std::chrono_literals;

inline constexpr ConnectionId kFirst{1}, kSecond{2};

class Bench {
 public:
  explicit Bench(uint64_t epoch = 1, uint32_t workers = 2) : conductor(Epoch{epoch}, "/job") {
    spec.id = *JobId::Parse("dlc0123456789abc");
    spec.roles = {{Role::kWorker, workers, 1}};
    spec.command = {"train"};
    spec.fault_tolerance.enable_job_restart = true;
  }

  void Begin() { conductor.Begin(now, spec); }
  void Pass(Duration duration) {
    now.monotonic = now.monotonic + duration;
    now.wall = now.wall + duration;
  }

  void Say(ConnectionId connection, const v1::ToMaster& message) {
    conductor.OnMessage(now, connection, message.SerializeAsString());
  }
  void Hello(ConnectionId connection, const std::string& agent = "a", uint64_t greatest_epoch = 0, uint32_t node = 0) {
    v1::ToMaster message;
    message.mutable_hello()->set_node(node);
    message.mutable_hello()->set_node_name("node");
    message.mutable_hello()->set_agent_id(agent);
    message.mutable_hello()->set_greatest_epoch(greatest_epoch);
    Say(connection, message);
  }
  void Heartbeat(ConnectionId connection) {
    v1::ToMaster message;
    message.mutable_heartbeat();
    Say(connection, message);
  }
  static v1::Report Started(uint32_t instance) {
    v1::Report report;
    report.mutable_attempt_started()->mutable_id()->set_instance(instance);
    return report;
  }
  void Report(ConnectionId connection, uint64_t sequence, v1::Report report) {
    v1::ToMaster message;
    *message.mutable_report() = std::move(report);
    message.mutable_report()->set_sequence(sequence);
    Say(connection, message);
  }

  // The journal takes all that waits, again and again until nothing does.
  void Settle() {
    while (conductor.WantsToWrite()) {
      conductor.BeginWrite();
      conductor.OnDurable(now);
      Collect();
    }
    Collect();
  }
  void Collect() {
    for (Effect& effect : conductor.TakeEffects()) effects.push_back(std::move(effect));
  }
  // A job whose instances have been told to start on one node.
  void RunToStart() {
    Begin();
    Settle();
    Hello(kFirst);
    Settle();
    v1::Report report;
    report.mutable_port_reserved()->set_reservation(1);
    report.mutable_port_reserved()->set_port(23456);
    Report(kFirst, 1, report);
    Settle();
    ASSERT_EQ(conductor.engine().job().phase, Phase::kRunning);
  }

  // What was transmitted since it was asked last.
  std::vector<v1::ToAgent> Heard(ConnectionId connection) {
    Collect();
    std::vector<v1::ToAgent> messages;
    for (const Effect& effect : effects) {
      const auto* transmit = std::get_if<Transmit>(&effect);
      if (transmit == nullptr || transmit->connection != connection) continue;
      messages.emplace_back().ParseFromString(transmit->bytes);
    }
    effects.clear();
    return messages;
  }
  template <typename Kind>
  size_t Count() {
    Collect();
    return static_cast<size_t>(
        std::ranges::count_if(effects, [](const Effect& effect) { return std::holds_alternative<Kind>(effect); }));
  }

  Conductor conductor;
  JobSpec spec;
  Moment now{Monotonic{1000s}, Wall{1'700'000'000s}};
  std::vector<Effect> effects;
};

inline size_t CountOf(const std::vector<v1::ToAgent>& messages, v1::Command::BodyCase kind) {
  return static_cast<size_t>(std::ranges::count_if(
      messages, [kind](const v1::ToAgent& message) { return message.command().body_case() == kind; }));
}

inline size_t Acknowledgements(const std::vector<v1::ToAgent>& messages) {
  return static_cast<size_t>(
      std::ranges::count_if(messages, [](const v1::ToAgent& message) { return message.has_acknowledge(); }));
}

}  // namespace aimaster
