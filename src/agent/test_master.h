// A master for tests: the real port, and a person's hands on what it says. All on the test's own thread.
#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/small_file.h"
#include "aimaster/v1/agent.pb.h"
#include "wire/server.h"

namespace aimaster::agent {

class TestMaster {
 public:
  static constexpr const char* kToken = "0123456789abcdef";

  TestMaster(std::string job_directory, v1::JobConfig job, uint64_t epoch)
      : job_(std::move(job)), epoch_(epoch), job_directory_(std::move(job_directory)) {
    auto server = Server::Listen(
        io_, ServerOptions{.token = kToken}, [](const HttpRequest&) { return HttpResponse{}; },
        [this](std::shared_ptr<ServerSocket> socket) { OnSocket(std::move(socket)); });
    server_ = std::move(*server);
    PublishAddress();
  }

  void PublishAddress() {
    const Status written =
        WriteSmallFile(job_directory_ + "/master.json",
                       "{\"host\":\"127.0.0.1\",\"port\":" + std::to_string(server_->port()) +
                           ",\"pid\":" + std::to_string(::getpid()) + ",\"epoch\":" + std::to_string(epoch_) + "}");
    if (!written) std::abort();
  }

  // Lets the world go on until it is so; false when it never was.
  bool Until(const std::function<bool()>& is_so, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!is_so()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  void Order(v1::Command command) {
    if (command.epoch() == 0) command.set_epoch(epoch_);
    v1::ToAgent message;
    *message.mutable_command() = std::move(command);
    if (socket_) socket_->Send(message.SerializeAsString());
  }
  void HangUp() {
    if (socket_) socket_->Close();
  }

  // What was reported, in order, each number of one agent process once.
  std::vector<v1::Report> reports;
  std::vector<v1::Hello> hellos;
  uint64_t heartbeats = 0;
  v1::Heartbeat last_heartbeat;
  bool welcomes = true;
  bool acknowledges = true;
  bool refuses_as_over = false;

  const v1::Report* Find(v1::Report::BodyCase kind, uint32_t attempt = 0, uint32_t instance = 0) const {
    for (const v1::Report& report : reports) {
      if (report.body_case() != kind) continue;
      const v1::AttemptId* const id = IdOf(report);
      if (id == nullptr || (id->attempt() == attempt && id->instance() == instance)) return &report;
    }
    return nullptr;
  }
  size_t Count(v1::Report::BodyCase kind) const {
    size_t count = 0;
    for (const v1::Report& report : reports) count += report.body_case() == kind;
    return count;
  }

 private:
  static const v1::AttemptId* IdOf(const v1::Report& report) {
    if (report.has_attempt_started()) return &report.attempt_started().id();
    if (report.has_attempt_ready()) return &report.attempt_ready().id();
    if (report.has_rank_exited()) return &report.rank_exited().id();
    if (report.has_attempt_ended()) return &report.attempt_ended().id();
    return nullptr;
  }

  void OnSocket(std::shared_ptr<ServerSocket> socket) {
    socket->on_message = [this, raw = socket.get()](std::string_view bytes) { OnMessage(*raw, bytes); };
    socket->on_close = [this, raw = socket.get()](const std::string&) {
      if (socket_.get() == raw) socket_.reset();
    };
    socket_ = std::move(socket);
  }

  void OnMessage(ServerSocket& socket, std::string_view bytes) {
    v1::ToMaster message;
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) std::abort();
    v1::ToAgent answer;
    if (message.has_hello()) {
      if (hellos.empty() || hellos.back().agent_id() != message.hello().agent_id()) seen_ = 0;
      hellos.push_back(message.hello());
      if (refuses_as_over) {
        answer.mutable_refused()->set_epoch(epoch_);
        answer.mutable_refused()->set_reason("the job has ended");
        answer.mutable_refused()->set_job_over(true);
      } else if (welcomes) {
        answer.mutable_welcome()->set_epoch(epoch_);
        *answer.mutable_welcome()->mutable_job() = job_;
      } else {
        return;
      }
    } else if (message.has_report()) {
      if (message.report().sequence() > seen_) {
        seen_ = message.report().sequence();
        reports.push_back(message.report());
      }
      if (!acknowledges) return;
      answer.mutable_acknowledge()->set_sequence(seen_);
    } else {
      ++heartbeats;
      last_heartbeat = message.heartbeat();
      answer.mutable_heartbeat_reply()->set_agent_wall_ns(message.heartbeat().wall_ns());
      answer.mutable_heartbeat_reply()->set_master_wall_ns(message.heartbeat().wall_ns());
    }
    socket.Send(answer.SerializeAsString());
  }

  boost::asio::io_context io_;
  v1::JobConfig job_;
  uint64_t epoch_;
  std::string job_directory_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<ServerSocket> socket_;
  uint64_t seen_ = 0;
};

}  // namespace aimaster::agent
