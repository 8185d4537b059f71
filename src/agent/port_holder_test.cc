#include "agent/port_holder.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>

namespace aimaster::agent {
namespace {

constexpr std::string_view kListening =
    "  sl  local_address rem_address   st tx_queue rx_queue\n"
    "   0: 00000000:2EE0 00000000:0000 0A 00000000:00000000 00:00000000\n"
    "   1: 0100007F:2EE1 0100007F:2EE2 01 00000000:00000000 00:00000000\n";

class PortHolderTest : public testing::Test {
 protected:
  // A listening socket on the port as rank 0 makes it, or −1.
  static int Listen(uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && ::listen(fd, 1) == 0) return fd;
    ::close(fd);
    return -1;
  }
  void AwaitHeld(const std::vector<uint16_t>& ports) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (holder.held_ports() != ports && std::chrono::steady_clock::now() < deadline) {
      io.restart();  // it stops whenever nothing is waited for
      io.run_one_for(std::chrono::seconds(1));
    }
    EXPECT_EQ(holder.held_ports(), ports);
  }
  boost::asio::io_context io;
  std::mt19937_64 random{testing::UnitTest::GetInstance()->random_seed() + std::random_device{}()};
  PortHolder holder{io, [this] { return random(); }};
};

TEST_F(PortHolderTest, ChoosesBelowTheEphemeralRange) {
  EXPECT_EQ(ChoosablePorts("32768\t60999\n"), (PortRange{10'000, 32'767}));
  EXPECT_EQ(ChoosablePorts("20000 60999"), (PortRange{10'000, 19'999}));
  EXPECT_EQ(ChoosablePorts("1024 65535"), (PortRange{10'000, 32'767}));
  EXPECT_EQ(ChoosablePorts(""), (PortRange{10'000, 32'767}));
}

TEST_F(PortHolderTest, ReadsTheTableOfListeners) {
  EXPECT_EQ(ListeningPorts(kListening), std::set<uint16_t>{0x2EE0});
  EXPECT_EQ(ListeningPorts("   0: 00000000000000000000000001000000:0050 0:0 0A 0"), std::set<uint16_t>{80}) << "tcp6";
  EXPECT_EQ(ListeningPorts(""), std::set<uint16_t>{});
  EXPECT_EQ(ListeningPorts("a b:zz c 0A\n: : : 0A\n0A 0A 0A 0A"), std::set<uint16_t>{});
}

TEST_F(PortHolderTest, RankZeroGetsTheHeldPortAndThenItIsLetGo) {
  const auto ports = holder.Reserve(1, true);
  ASSERT_TRUE(ports) << ports.error().message;
  EXPECT_EQ(holder.held_ports(), *ports);
  const int listener = Listen(ports->front());
  ASSERT_GE(listener, 0);
  AwaitHeld({});
  ::close(listener);
}

TEST_F(PortHolderTest, EachOfSeveralPortsIsLetGoWhenSomebodyListensThere) {
  const auto ports = holder.Reserve(3, true);
  ASSERT_TRUE(ports) << ports.error().message;
  ASSERT_EQ(std::set<uint16_t>(ports->begin(), ports->end()).size(), 3u) << "different ones";
  const int listener = Listen(ports->at(1));
  ASSERT_GE(listener, 0);
  std::vector<uint16_t> others{ports->at(0), ports->at(2)};
  std::ranges::sort(others);
  AwaitHeld(others);
  ::close(listener);
  holder.Release(ports->at(0));
  EXPECT_EQ(holder.held_ports(), std::vector<uint16_t>{ports->at(2)});
}

TEST_F(PortHolderTest, APortIsHeldAgainForItsNextListener) {
  const uint16_t port = holder.Reserve(1, true).value_or(std::vector<uint16_t>{0}).front();
  const int first = Listen(port);
  AwaitHeld({});
  holder.Hold(port);
  EXPECT_EQ(holder.held_ports(), std::vector<uint16_t>{}) << "somebody listens there";
  ::close(first);
  holder.Hold(port);
  holder.Hold(port);
  EXPECT_EQ(holder.held_ports(), std::vector<uint16_t>{port});
  const int second = Listen(port);
  EXPECT_GE(second, 0);
  AwaitHeld({});
  ::close(second);
}

TEST_F(PortHolderTest, TwoHoldersNeverHoldTheSamePort) {
  const auto ports = holder.Reserve(1, true);
  ASSERT_TRUE(ports);
  const uint64_t same = ports->front() - 10'000u;
  PortHolder other(io, [same] { return same; });  // always tries the port that is held
  EXPECT_FALSE(other.Reserve(1, true));
  holder.ReleaseAll();
  EXPECT_EQ(other.Reserve(1, true).value_or(std::vector<uint16_t>{}), *ports);
}

TEST_F(PortHolderTest, WithoutHoldingThePortIsFreeAtOnce) {
  const auto ports = holder.Reserve(2, false);
  ASSERT_TRUE(ports);
  EXPECT_EQ(holder.held_ports(), std::vector<uint16_t>{});
  const int listener = Listen(ports->front());
  EXPECT_GE(listener, 0);
  ::close(listener);
}

TEST_F(PortHolderTest, ANewReservationGivesTheOldOneUp) {
  const auto first = holder.Reserve(2, true);
  const auto second = holder.Reserve(1, true);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(holder.held_ports(), *second);
}

}  // namespace
}  // namespace aimaster::agent
