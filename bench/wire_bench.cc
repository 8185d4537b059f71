// How many messages per second one master's port takes: 100 agents over loopback, each always with something to say,
// server and agents on a thread each in one process. The figure is an upper bound for a master, which also decodes and
// journals what it gets.
#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "wire/server.h"
#include "wire/websocket_client.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAgents = 100;
constexpr size_t kMessages = 200'000;
constexpr size_t kMessageBytes = 100;  // about a heartbeat
constexpr size_t kWindow = 64 * 1024;  // bytes that an agent keeps queued
constexpr char kToken[] = "benchmark";

struct Agent {
  Agent(boost::asio::io_context& io, uint16_t port)
      : client(io, {"127.0.0.1", port, "/agent", kToken},
               {[] {}, [this](std::string_view) { Refill(); }, [](const std::string&) {}}) {
    Refill();
  }
  // Every message is answered with an empty one per window, so that agents need no clock to go on.
  void Refill() {
    while (client.queued_bytes() < kWindow) client.Send(std::string(kMessageBytes, 'x'));
  }
  aimaster::WebSocketClient client;
};

// Of the whole process, so that a busy machine changes it little.
double ProcessorSeconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

int main() {
  boost::asio::io_context server_io{1};
  size_t taken = 0;
  Clock::time_point start, end;
  auto server = aimaster::Server::Listen(
      server_io, {.token = kToken}, [](const aimaster::HttpRequest&) { return aimaster::HttpResponse{}; },
      [&](std::shared_ptr<aimaster::ServerSocket> socket) {
        socket->on_message = [&, agent = socket.get(), own = size_t{0}](std::string_view) mutable {
          if (taken++ == 0) start = Clock::now();
          if (++own % 100 == 0) agent->Send({});
          if (taken == kMessages) {
            end = Clock::now();
            server_io.stop();
          }
        };
      });
  if (!server) {
    std::cerr << server.error().message << "\n";
    return 1;
  }

  boost::asio::io_context agents_io{1};
  std::vector<std::unique_ptr<Agent>> agents;
  for (int i = 0; i < kAgents; ++i) agents.push_back(std::make_unique<Agent>(agents_io, (*server)->port()));
  std::thread agents_thread([&] { agents_io.run(); });
  server_io.run();
  agents_io.stop();
  agents_thread.join();

  const double seconds = std::chrono::duration<double>(end - start).count();
  std::cout << kMessages << " messages of " << kMessageBytes << " bytes from " << kAgents << " agents in " << seconds
            << " s: " << static_cast<uint64_t>(static_cast<double>(kMessages) / seconds) << " per second; "
            << ProcessorSeconds() * 1e6 / static_cast<double>(kMessages)
            << " microseconds of processor time each, both ends together\n";
  return 0;
}
