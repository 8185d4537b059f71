// What one rank's death says for itself.
#include "detect/rank_cause.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace aimaster {
namespace {

using std::chrono::milliseconds;

std::string CodeOf(const RankFailure& failure) {
  return RuleTable::BuiltIn().rule(CauseOf(failure, RuleTable::BuiltIn()).rule).code;
}
RankCause Cause(const RankFailure& failure) { return CauseOf(failure, RuleTable::BuiltIn()); }

LineMatch Line(const std::string& rule, const std::string& line, uint64_t offset = 0) {
  return {rule, line, "rank0.err", offset};
}

TEST(RankCauseTest, TextDecidesWhereTheExitCodeSaysNothing) {
  const RankFailure failure{.exit = RankExit{.code = 1}, .matches = {Line("CudaOutOfMemory", "CUDA out of memory")}};
  const RankCause cause = Cause(failure);
  EXPECT_EQ(CodeOf(failure), "CudaOutOfMemory");
  EXPECT_EQ(cause.source, ErrorSource::kLog);
  EXPECT_EQ(cause.message, "CUDA out of memory");
}

TEST(RankCauseTest, WithoutTellingTextTheLastLineIsTheMessage) {
  const RankFailure failure{.exit = RankExit{.code = 7}, .last_error_line = "shard 3 is missing"};
  EXPECT_EQ(CodeOf(failure), "ExitCode");
  EXPECT_EQ(Cause(failure).source, ErrorSource::kProcess);
  EXPECT_EQ(Cause(failure).message, "shard 3 is missing");
}

TEST(RankCauseTest, ASilentDeathIsDescribed) {
  EXPECT_EQ(Cause({.exit = RankExit{.code = 7}}).message, "exit code 7");
  EXPECT_EQ(Cause({.exit = RankExit{.signal = 9}}).message, "killed by SIGKILL (9)");
  EXPECT_EQ(Cause({.exit = RankExit{.signal = 11, .core_dumped = true}}).message,
            "killed by SIGSEGV (11), core dumped");
  EXPECT_EQ(Cause({.exit = RankExit{.signal = 64}}).message, "killed by signal 64");
  EXPECT_EQ(Cause({.lost_reason = "node-1 does not answer"}).message, "lost: node-1 does not answer");
}

// ---- beneath a torchrun ----

RankFailure BeneathTorchrun(const RankExit& exit) {
  return {.exit = exit,
          .matches = {Line("GlooPeerLost", "RuntimeError: [pair.cc:589] Read error: Connection reset by peer")},
          .last_error_line = "RuntimeError: [pair.cc:589] Read error: Connection reset by peer",
          .torchrun = Torchrun{.rank = 5, .pid = 77}};
}

TEST(RankCauseTest, WhatTheOtherProcessesOfATorchrunSayIsNotAboutTheOneThatWasKilled) {
  EXPECT_EQ(CodeOf(BeneathTorchrun({.signal = 9})), "Sigkill");
  EXPECT_EQ(Cause(BeneathTorchrun({.signal = 9})).message, "rank 5 of its torchrun: killed by SIGKILL (9)");
  EXPECT_EQ(CodeOf(BeneathTorchrun({.code = 7})), "ExitCode");
  EXPECT_EQ(Cause(BeneathTorchrun({.code = 7})).message, "rank 5 of its torchrun: exit code 7");
  EXPECT_EQ(Cause(BeneathTorchrun({.code = 7})).standing, Standing::kOwnFault);
  EXPECT_EQ(CodeOf(BeneathTorchrun({.code = 1})), "GlooPeerLost") << "that one may have said it";
}

TEST(RankCauseTest, NorIsTheErrorFileThatTorchrunKept) {
  RankFailure failure = BeneathTorchrun({.signal = 9});
  failure.error_file_message = "RuntimeError: Connection reset by peer";
  EXPECT_EQ(Cause(failure).message, "rank 5 of its torchrun: killed by SIGKILL (9)");
}

TEST(RankCauseTest, AnErrorFileThatOnlyTellsOfALostPeerYieldsToACause) {
  RankFailure failure{.exit = RankExit{.code = 1},
                      .matches = {{"GlooPeerLost", "RuntimeError: Connection closed by peer", "rank0.error.json", 0},
                                  Line("UserException", "ValueError: no such column")},
                      .error_file_message = "RuntimeError: Connection closed by peer"};
  EXPECT_EQ(CodeOf(failure), "UserException");
  EXPECT_EQ(Cause(failure).message, "ValueError: no such column");
  failure.matches.pop_back();
  EXPECT_EQ(Cause(failure).message, "RuntimeError: Connection closed by peer");
}

TEST(RankCauseTest, WhoWasStoppedForWantOfAMasterSaysSoHoweverItEnded) {
  for (const RankExit& exit : {RankExit{.code = 0}, RankExit{.code = 1}, RankExit{.signal = 15}}) {
    const RankFailure failure{.exit = exit,
                              .orphaned = std::chrono::seconds(612),
                              .matches = {Line("UserException", "ValueError: interrupted")},
                              .last_error_line = "Terminated",
                              .error_file_message = "SystemExit"};
    const RankCause cause = Cause(failure);
    EXPECT_EQ(CodeOf(failure), "Orphaned");
    EXPECT_EQ(cause.standing, Standing::kOwnFault);
    EXPECT_EQ(cause.message.find("no master was there for 10 min 12 s (--orphan-timeout), so its node stopped it: "),
              0u)
        << cause.message;
  }
}

TEST(RankCauseTest, WantOfResourcesIsNoFaultOfTheCommand) {
  RankFailure failure{.exit = RankExit{.code = 126}, .exec_error = "cannot create a process: try again"};
  EXPECT_EQ(CodeOf(failure), "CommandNotExecutable");
  for (const int error : {EAGAIN, ENOMEM, EMFILE, ENOSPC}) {
    failure.exec_errno = error;
    EXPECT_EQ(CodeOf(failure), "NoResources");
    EXPECT_EQ(Cause(failure).message, "cannot create a process: try again");
  }
  failure.exec_errno = EACCES;
  EXPECT_EQ(CodeOf(failure), "CommandNotExecutable");
}

TEST(RankCauseTest, WhatItPrintedBeforeDoesNotExplainAKill) {
  const RankFailure failure{.exit = RankExit{.signal = 9},
                            .matches = {Line("UserException", "ValueError: caught and reported")},
                            .last_error_line = "ValueError: caught and reported"};
  EXPECT_EQ(CodeOf(failure), "Sigkill");
  EXPECT_EQ(Cause(failure).message, "killed by SIGKILL (9); its last line: ValueError: caught and reported");
}

TEST(RankCauseTest, AnAbortIsExplainedByTheTextBeforeIt) {
  EXPECT_EQ(CodeOf({.exit = RankExit{.signal = 6}, .matches = {Line("CollectiveTimeout", "Watchdog caught …")}}),
            "CollectiveTimeout");
  EXPECT_EQ(CodeOf({.exit = RankExit{.signal = 6}}), "Abort");
}

TEST(RankCauseTest, ItsOwnErrorCountsMoreThanTheLostConnectionThatFollowed) {
  const RankFailure failure{
      .exit = RankExit{.code = 1},
      .matches = {Line("UserException", "ValueError: bad", 10), Line("GlooPeerLost", "Connection closed by peer", 90)}};
  EXPECT_EQ(CodeOf(failure), "UserException");
  EXPECT_EQ(Cause(failure).standing, Standing::kOwnFault);
}

TEST(RankCauseTest, OldNewsIsNoCause) {
  const RankFailure failure{.exit = RankExit{.code = 1},
                            .matches = {Line("DiskFull", "cache: No space left on device", 10),
                                        Line("GlooPeerLost", "Connection closed by peer", 10'000'000)}};
  EXPECT_EQ(CodeOf(failure), "GlooPeerLost");
  EXPECT_EQ(Cause(failure).standing, Standing::kConsequence);
}

TEST(RankCauseTest, AConfirmationDecidesOnlyWhereNothingElseDoes) {
  const LineMatch xid = Line("GpuApplicationXid", "NVRM: Xid (PCI:0000:3d:00): 31, pid=1");
  EXPECT_EQ(CodeOf({.exit = RankExit{.code = 1}, .matches = {xid}}), "GpuApplicationXid");
  EXPECT_EQ(CodeOf({.exit = RankExit{.code = 7}, .matches = {xid}}), "ExitCode");
  const RankFailure both{.exit = RankExit{.code = 1},
                         .matches = {xid, Line("CudaIllegalMemoryAccess", "an illegal memory access", 50)}};
  EXPECT_EQ(CodeOf(both), "CudaIllegalMemoryAccess");
  ASSERT_NE(Cause(both).confirmation, nullptr);
}

TEST(RankCauseTest, TheErrorFileHasTheBestMessage) {
  const RankFailure failure{.exit = RankExit{.code = 1},
                            .matches = {Line("UserException", "ValueError: ba")},
                            .error_file_message = "ValueError: bad\n  shape (3, 4)"};
  EXPECT_EQ(Cause(failure).message, "ValueError: bad shape (3, 4)");
}

TEST(RankCauseTest, AMessageIsOneBoundedLine) {
  EXPECT_EQ(Cause({.exit = RankExit{.code = 1}, .error_file_message = std::string(100'000, 'x')}).message.size(),
            kErrorTextMaxBytes);
}

TEST(RankCauseTest, ItBeganToFailAtTheEarliestOfItsTimes) {
  const auto at = [](int ms) { return Wall{milliseconds(ms)}; };
  EXPECT_EQ(Cause({.exit = RankExit{.signal = 11, .time = at(9000)}, .dump_start = at(100)}).time, at(100));
  EXPECT_EQ(Cause({.exit = RankExit{.code = 1, .time = at(50)}, .error_file_time = at(20)}).time, at(20));
  EXPECT_EQ(Cause({.lost_reason = "gone"}).time, std::nullopt);
}

TEST(RankCauseTest, ARuleThatThisVersionDoesNotKnowIsPassedOver) {
  EXPECT_EQ(CodeOf({.exit = RankExit{.code = 7}, .matches = {Line("FromTheFuture", "?")}}), "ExitCode");
}

}  // namespace
}  // namespace aimaster
