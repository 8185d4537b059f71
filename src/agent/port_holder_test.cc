#include "agent/port_holder.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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
  EXPECT_TRUE(HasListener(kListening, 0x2EE0));
  EXPECT_FALSE(HasListener(kListening, 0x2EE1));
  EXPECT_FALSE(HasListener(kListening, 0x2EE2));
  EXPECT_FALSE(HasListener(kListening, 0));
  EXPECT_FALSE(HasListener("", 80));
}

TEST_F(PortHolderTest, RankZeroGetsTheHeldPortAndThenItIsLetGo) {
  const auto port = holder.Reserve(true);
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_EQ(holder.held_port(), *port);
  const int listener = Listen(*port);
  ASSERT_GE(listener, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (holder.held_port() != 0 && std::chrono::steady_clock::now() < deadline)
    io.run_one_for(std::chrono::seconds(1));
  EXPECT_EQ(holder.held_port(), 0);
  ::close(listener);
}

TEST_F(PortHolderTest, TwoHoldersNeverHoldTheSamePort) {
  const auto port = holder.Reserve(true);
  ASSERT_TRUE(port);
  const uint64_t same = *port - 10'000u;
  PortHolder other(io, [same] { return same; });  // always tries the port that is held
  EXPECT_FALSE(other.Reserve(true));
  holder.Release();
  EXPECT_EQ(other.Reserve(true).value_or(0), *port);
}

TEST_F(PortHolderTest, WithoutHoldingThePortIsFreeAtOnce) {
  const auto port = holder.Reserve(false);
  ASSERT_TRUE(port);
  EXPECT_EQ(holder.held_port(), 0);
  const int listener = Listen(*port);
  EXPECT_GE(listener, 0);
  ::close(listener);
}

TEST_F(PortHolderTest, ANewReservationGivesTheOldOneUp) {
  const auto first = holder.Reserve(true);
  const auto second = holder.Reserve(true);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(holder.held_port(), *second);
}

}  // namespace
}  // namespace aimaster::agent
