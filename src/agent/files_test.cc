// The documents that the agent reads and writes.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "agent/agent_file.h"
#include "agent/attempt_claim.h"
#include "agent/attempt_files.h"
#include "agent/error_file.h"
#include "agent/launch_file.h"
#include "agent/lease_count.h"
#include "agent/lease_keeper.h"
#include "agent/limits.h"
#include "agent/oom_kills.h"
#include "agent/owed_files.h"
#include "agent/small_file.h"
#include "core/failure.h"

namespace aimaster::agent {
namespace {

TEST(ClaimTest, ReadsWhatItWrote) {
  const Claim claim{.key = {3, 2},
                    .job_id = "dlc0000000000000",
                    .instance_name = "dlc0000000000000-worker-3",
                    .round = 2,
                    .epoch = 7,
                    .boot_id = "b",
                    .log_directory = "/logs/\"x\"",
                    .ranks = {{6, 0}, {7, 1}}};
  EXPECT_EQ(ParseClaim(FormatClaim(claim)), claim);
}

TEST(ClaimTest, AHalfWrittenOneIsNone) {
  const std::string text = FormatClaim({.ranks = {{0, 0}}});
  for (size_t length = 0; length + 2 < text.size(); ++length) EXPECT_FALSE(ParseClaim(text.substr(0, length)));
}

class DirectoryTest : public testing::Test {
 protected:
  DirectoryTest() {
    char name[] = "/tmp/files_test.XXXXXX";
    directory = AttemptDirectory(::mkdtemp(name));
  }
  ~DirectoryTest() override { std::filesystem::remove_all(directory.path()); }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteSmallFile(directory.File(name), text));
  }
  AttemptDirectory directory;
  const Claim claim{.key = {3, 2},
                    .job_id = "dlc0000000000000",
                    .instance_name = "dlc0000000000000-worker-3",
                    .round = 2,
                    .epoch = 7,
                    .boot_id = "b",
                    .log_directory = "/logs",
                    .ranks = {{6, 0}}};
};

TEST_F(DirectoryTest, ADocumentSaysWhyItCanNotBeHad) {
  EXPECT_EQ(directory.ReadClaim().error(), Unread::kAbsent);
  Write("claim.json", "{");
  EXPECT_EQ(directory.ReadClaim().error(), Unread::kGarbage);
  ASSERT_TRUE(MakeDirectories(directory.File("ended.json")));
  EXPECT_EQ(directory.ReadEnded().error(), Unread::kGarbage);
  EXPECT_EQ(WhyUnread(EMFILE), Unread::kUnreadable);
  EXPECT_EQ(WhyUnread(EIO), Unread::kUnreadable);
}

TEST_F(DirectoryTest, TheLaunchFileStandsInForTheClaim) {
  const auto find = [&] { return FindClaim(directory, claim.instance_name, 2); };
  EXPECT_EQ(find().error(), Unread::kAbsent);
  Write("launch", FormatLaunch({.claim = claim, .command = {"x"}, .ranks = {{.rank = 6}}}));
  EXPECT_EQ(find(), claim);
  Write("claim.json", "not a claim");
  EXPECT_EQ(find(), claim);
  Write("launch", "not a launch file");
  EXPECT_EQ(find().error(), Unread::kGarbage);
  Write("claim.json", FormatClaim(claim));
  EXPECT_EQ(find(), claim);
  EXPECT_EQ(FindClaim(directory, claim.instance_name, 3).error(), Unread::kGarbage) << "it is of another place";
}

TEST_F(DirectoryTest, TheShimKnowsTheRanksWhenNobodyElseDoes) {
  Write("started.json", R"({"shim":{"pid":10,"start_ticks":5},"boot_id":"then","session":10,
      "ranks":[{"rank":6,"local":0,"pid":11,"start_ticks":6}]})");
  const Claim made_up = MakeUpClaim(directory, {3, 2}, claim.instance_name, "now");
  EXPECT_EQ(made_up.job_id, claim.job_id);
  EXPECT_EQ(made_up.boot_id, "then");
  EXPECT_EQ(made_up.ranks, claim.ranks);
}

TEST_F(DirectoryTest, AShimHasBegunOnceItReservesExitFiles) {
  EXPECT_FALSE(directory.HasBegun());
  for (const char* name : {"claim.json", "launch", "lock", "shim.log", "ended.tmp", "rank0.out"}) Write(name, "");
  EXPECT_FALSE(directory.HasBegun());
  Write("rank7.exit.tmp", "");
  EXPECT_TRUE(directory.HasBegun());
}

TEST_F(DirectoryTest, WhatCanNotBeWrittenIsTriedAgainUntilItIs) {
  boost::asio::io_context io;
  OwedFiles owed(io);
  const std::string in_the_way = directory.File("one.tmp");  // a directory where the file is to be written first
  ASSERT_TRUE(MakeDirectories(in_the_way));
  owed.Write(directory.File("one"), "1");
  owed.Write(directory.File("deep/two"), "2");
  owed.Write(directory.File("one"), "3");
  io.run_for(kFileRetry * 3 / 2);
  EXPECT_TRUE(owed.owes());
  std::filesystem::remove(in_the_way);
  for (io.restart(); owed.owes();) ASSERT_EQ(io.run_one_for(10s), 1u);
  EXPECT_EQ(ReadSmallFile(directory.File("one"), 10), "3");
  EXPECT_EQ(ReadSmallFile(directory.File("deep/two"), 10), "2");
}

TEST(TombstoneTest, ReadsWhatItWrote) { EXPECT_EQ(ParseTombstone(FormatTombstone({4, 5})), (AttemptKey{4, 5})); }

TEST(ExitFileTest, TheTimeIsToldByTheWallClockAsItGoesNow) {
  const auto exit = ParseRankExit(R"({"code":7,"time_ns":3600000000100,"monotonic_ns":40})");
  ASSERT_TRUE(exit);
  const Moment set_back{Monotonic{Duration{60}}, Wall{Duration{120}}};
  EXPECT_EQ(ExitTimeNs(*exit, set_back), 100);
  EXPECT_EQ(ExitTimeNs(RankExitFile{.time_ns = 5}, set_back), 5) << "an older shim does not say it";
}

TEST(ExitFileTest, CodeOrSignalButNotBothAndNotNeither) {
  const auto code = ParseRankExit(R"({"code":7,"signal":null,"core":false,"time_ns":5,"stopped_by_us":true}   )");
  ASSERT_TRUE(code);
  EXPECT_EQ(code->code, 7);
  EXPECT_FALSE(code->signal);
  EXPECT_TRUE(code->stopped_by_us);
  EXPECT_EQ(code->time_ns, 5);
  const auto signal = ParseRankExit(R"({"code":null,"signal":11,"core":true,"time_ns":5})");
  ASSERT_TRUE(signal);
  EXPECT_EQ(signal->signal, 11);
  EXPECT_TRUE(signal->core);
  EXPECT_FALSE(ParseRankExit(R"({"code":1,"signal":11,"time_ns":5})"));
  EXPECT_FALSE(ParseRankExit(R"({"code":null,"signal":null,"time_ns":5})"));
  EXPECT_FALSE(ParseRankExit(R"({"code":1})"));
  EXPECT_FALSE(ParseRankExit(R"({"code":99999999999,"time_ns":5})"));
  EXPECT_FALSE(ParseRankExit(std::string(4096, ' ')));  // reserved, not written
}

TEST(StartedFileTest, ARankWithoutAProcessIsLeftOut) {
  const auto started = ParseStarted(
      R"({"shim":{"pid":10,"start_ticks":5},"boot_id":"b","session":10,
          "ranks":[{"rank":0,"local":0,"pid":11,"start_ticks":6},{"rank":1,"local":1}]})");
  ASSERT_TRUE(started);
  EXPECT_EQ(started->shim, (ProcessIdentity{10, 5}));
  ASSERT_EQ(started->ranks.size(), 1u);
  EXPECT_EQ(started->ranks[0].process, (ProcessIdentity{11, 6}));
}

TEST(EndedFileTest, TellsALostAttemptFromOneThatEnded) {
  EXPECT_EQ(ParseEnded(R"({"time_ns":1,"swept":0,"stop":"none"})")->lost_reason, "");
  EXPECT_EQ(ParseEnded(FormatEnded({"its shim was killed"}, 1))->lost_reason, "its shim was killed");
  EXPECT_FALSE(ParseEnded("{"));
}

TEST(DescendantsTest, LinesThatAreNoneAreLeftOut) {
  const auto found = ParseDescendants("12 34\n\nx 1\n7\n8 x\n1 5\n-4 5\n56 78");
  EXPECT_EQ(found, (std::vector<ProcessIdentity>{{12, 34}, {56, 78}}));
}

TEST(AgentFileTest, ReadsWhatItWrote) {
  const AgentFile file{.process = {12, 34},
                       .boot_id = "b",
                       .greatest_epoch = 5,
                       .orphan_timeout_ms = 6,
                       .log_max_bytes = 7,
                       .socket = "/run/s",
                       .retryable_errors = {"connect timeout", "\xff\n\""},
                       .hang_setting = HangSetting{.interval_ms = -1, .set_at_ns = UINT64_MAX, .round = 8}};
  EXPECT_EQ(ParseAgentFile(FormatAgentFile(file)), file);
  EXPECT_EQ(ParseAgentFile(FormatAgentFile({.boot_id = "b"})), AgentFile{.boot_id = "b"});
  EXPECT_FALSE(ParseAgentFile("{}"));
}

TEST(StatTest, TheNameMayHoldAnything) {
  const auto stat = ParseStat("42 (a) b) (c) S 7 42 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 10 20\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->session, 40);
  EXPECT_EQ(stat->start_ticks, 98765u);
  EXPECT_FALSE(ParseStat("42 (a) S 7"));
  EXPECT_FALSE(ParseStat(""));
}

TEST(StatTest, KnowsItself) {
  const auto self = ReadStat(::getpid());
  ASSERT_TRUE(self);
  EXPECT_TRUE(IsAlive({::getpid(), self->start_ticks}));
  EXPECT_FALSE(IsAlive({::getpid(), self->start_ticks + 1}));  // the seat has another holder
  EXPECT_EQ(OpenPidfd({::getpid(), self->start_ticks + 1}), -1);
}

TEST(KeptExitsTest, PagesThatAreBlankOrNonsenseAreLeftOut) {
  std::string pages(3 * kShimExitFileBytes, '\0');
  const std::string exit = R"({"rank":9,"local":4,"code":7,"signal":null,"time_ns":5})";
  pages.replace(kShimExitFileBytes, exit.size(), exit);
  pages.replace(2 * kShimExitFileBytes, 3, "{]x");
  const auto exits = ParseKeptExits(pages);
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits.at(4).code, 7);
  EXPECT_TRUE(ParseKeptExits("").empty());
}

TEST(StatusTest, APendingSignalIsSeenWhoeverItWasSentTo) {
  const std::string status =
      "Name:\tx\nSigQ:\t1/2\nSigPnd:\t0000000000000004\nShdPnd:\t0000000000004000\nSigBlk:\tff\n";
  EXPECT_TRUE(IsPending(status, 3));
  EXPECT_TRUE(IsPending(status, 15));
  EXPECT_FALSE(IsPending(status, 1));
  EXPECT_FALSE(IsPending("", 3));
}

// As an agent counts: it looks at its own pace, and is told of the loss when it happens.
TEST(LeaseCountTest, AMasterHasAllOfItsTimeToComeBack) {
  for (const Duration timeout : {Duration(1s), Duration(2100ms), Duration(3s), Duration(25s), Duration(600s)}) {
    for (const Duration led : {50ms, 400ms, 950ms, 999ms, 7090ms, 7730ms}) {
      LeaseCount count(kOrphanTimeoutDefault);
      const Monotonic start{100s}, lost = start + led;
      count.Begin(start, std::nullopt);
      for (Monotonic now = start; now < lost; now = now + count.pace()) count.Renew(now, timeout);
      count.Renew(lost, timeout);
      Monotonic now = lost;
      while (count.Look(now) == Duration::zero()) now = now + count.pace();
      EXPECT_GE(now - lost, timeout);
      EXPECT_LE(now - lost, timeout + 3 * count.pace());
    }
  }
}

TEST(LeaseKeeperTest, ALeaseOutlivesItsAgentAndNotItsBoot) {
  char folder[] = "/tmp/lease_test.XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/lease";
  const auto at = [](int64_t seconds) { return Monotonic{std::chrono::seconds(seconds)}; };
  {
    LeaseKeeper first(path, "boot", 1, 100s);
    ASSERT_TRUE(first.Open(at(1000)));
    ASSERT_TRUE(first.Renew(at(1010), 100s));
  }
  const auto expires = [&](const char* boot, int64_t since) {
    LeaseKeeper keeper(path, boot, 2, 100s);
    EXPECT_TRUE(keeper.Open(at(since)));
    for (int64_t second = since; second < since + 200; ++second) {
      if (keeper.Look(at(second)) != Duration::zero()) return second;
    }
    return int64_t{0};
  };
  EXPECT_EQ(expires("boot", 1050), 1112) << "time went on without an agent";
  EXPECT_EQ(expires("boot", 5000), 5007) << "one that comes late gives its master a moment to be heard";
  EXPECT_EQ(expires("another boot", 2000), 2102);
  ::unlink(path.c_str());
  ::rmdir(folder);
}

TEST(LeaseKeeperTest, WhatCanNotBeWrittenIsSaidAndTriedAgain) {
  char folder[] = "/tmp/lease_test.XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string directory = std::string(folder) + "/later";
  LeaseKeeper keeper(directory + "/lease", "boot", 1, 100s);
  EXPECT_FALSE(keeper.Open(Monotonic{}));
  EXPECT_FALSE(keeper.Renew(Monotonic{1s}, 100s));
  ASSERT_TRUE(MakeDirectories(directory));
  EXPECT_TRUE(keeper.Renew(Monotonic{2s}, 100s));
  ::unlink((directory + "/lease").c_str());
  ::rmdir(directory.c_str());
  ::rmdir(folder);
}

TEST(LaunchFileTest, IsARowOfStrings) {
  const std::string bytes = FormatLaunch({.claim = {.key = {3, 2},
                                                    .job_id = "dlc0",
                                                    .instance_name = "w-0",
                                                    .round = 1,
                                                    .epoch = 6,
                                                    .boot_id = "b",
                                                    .log_directory = "/l"},
                                          .stop_grace_ms = 500,
                                          .working_directory = "/w",
                                          .command = {"echo", ""},
                                          .ranks = {{.rank = 4, .local = 1, .environment = {{"A", "b=c"}}}}});
  std::string readable = bytes;
  for (char& c : readable) c = c == '\0' ? '|' : c;
  EXPECT_EQ(readable,
            "aimaster-launch 1|instance=w-0|instance_index=3|attempt=2|job=dlc0|round=1|epoch=6|boot_id=b|"
            "stop_grace_ms=500|log_dir=/l|ranks=1|"
            "rank=4|local=1|cwd=/w|argc=2|echo||envc=1|A=b=c|end|");
}

TEST(LaunchFileTest, SaysWhoTheAttemptIsShouldTheClaimBeLost) {
  Launch launch{.claim = {.key = {3, 2},
                          .job_id = "dlc0",
                          .instance_name = "w-0",
                          .round = 1,
                          .epoch = 6,
                          .boot_id = "b",
                          .log_directory = "/l",
                          .ranks = {{4, 1}, {5, 0}}},
                .working_directory = "/w",
                .command = {"rank=9", ""},
                .ranks = {{.rank = 4, .local = 1, .environment = {{"A", "b=c"}}}, {.rank = 5}}};
  const std::string bytes = FormatLaunch(launch);
  EXPECT_EQ(ParseLaunchClaim(bytes), launch.claim);
  for (size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(ParseLaunchClaim(bytes.substr(0, length)));
}

TEST(ErrorFileTest, ReadsBothShapes) {
  EXPECT_EQ(ParseErrorFile(R"({"message":"boom"})"), (ErrorFile{"boom", 0}));
  EXPECT_EQ(ParseErrorFile(
                R"({"message":{"message":"ValueError: x","extraInfo":{"py_callstack":"…","timestamp":"1700000000"}}})"),
            (ErrorFile{"ValueError: x", 1'700'000'000'000'000'000}));
}

TEST(ErrorFileTest, OddTimesAreUnknownTimes) {
  for (const char* time : {"\"\"", "\"x\"", "\"1e400\"", "-5", "\"nan\"", "\"inf\"", "[]", "1e300", "\"12x\""}) {
    const auto file =
        ParseErrorFile(std::string(R"({"message":{"message":"m","extraInfo":{"timestamp":)") + time + "}}}");
    ASSERT_TRUE(file) << time;
    EXPECT_EQ(file->time_ns, 0) << time;
  }
}

TEST(ErrorFileTest, WhatIsNoErrorFileIsNone) {
  for (const char* text : {"", "{", "[]", "{}", R"({"message":5})", R"({"message":{"message":5}})", "null"}) {
    EXPECT_FALSE(ParseErrorFile(text)) << text;
  }
  EXPECT_FALSE(ParseErrorFile(R"({"message":")" + std::string(kErrorFileMaxBytes, 'x') + "\"}"));
}

TEST(ErrorFileTest, LongTextsAreCutBetweenCharacters) {
  std::string message = "x";
  while (message.size() < kErrorTextMaxBytes + 10) message += "ä";
  const auto file = ParseErrorFile(R"({"message":")" + message + "\"}");
  ASSERT_TRUE(file);
  EXPECT_LE(file->message.size(), kErrorTextMaxBytes);
  EXPECT_EQ(file->message.size() % 2, 1u);
  EXPECT_EQ(SafeText("a\xff\xc3"), "a??");
  EXPECT_EQ(SafeText("\xed\xa0\x80\xc0\x80"), "?????");
}

TEST(OomKillsTest, ReadsTheCounterOfEachKind) {
  EXPECT_EQ(ParseOomKills("low 0\noom 3\noom_kill 2\noom_group_kill 9\n"), 2u);
  EXPECT_EQ(ParseOomKills("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"), 4u);
  EXPECT_EQ(ParseOomKills("nothing 1\n"), std::nullopt);
}

}  // namespace
}  // namespace aimaster::agent
