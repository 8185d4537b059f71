#include "detect/line_scanner.h"

#include <gtest/gtest.h>

#include <string>

namespace aimaster {
namespace {

class LineScannerTest : public testing::Test {
 protected:
  void Read(const std::string& text) {
    scanner_.Feed(text, offset_);
    offset_ += text.size();
  }
  std::vector<std::string> Rules() {
    std::vector<std::string> rules;
    for (const LineMatch& match : scanner_.Matches()) rules.push_back(match.rule);
    return rules;
  }

  PatternMatcher matcher_;
  LineScanner scanner_{matcher_, "rank0.err"};
  uint64_t offset_ = 0;
};

using Strings = std::vector<std::string>;

TEST_F(LineScannerTest, QuotesTheExceptionAtTheEndOfATraceback) {
  Read(
      "step 1\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\n"
      "ValueError: too large\n");
  scanner_.Finish();
  EXPECT_EQ(scanner_.last_error_line(), "ValueError: too large");
  ASSERT_EQ(scanner_.Matches().size(), 1u);
  EXPECT_EQ(scanner_.Matches()[0], (LineMatch{"UserException", "ValueError: too large", "rank0.err", 92}));
}

TEST_F(LineScannerTest, QuotesTheLastLineOfAProgramThatIsNoPython) {
  Read("starting\nfatal: shard 3 is missing\n");
  EXPECT_EQ(scanner_.last_error_line(), "fatal: shard 3 is missing");
  EXPECT_TRUE(scanner_.Matches().empty());
}

TEST_F(LineScannerTest, OfACrashOfPythonItselfItQuotesWhatItWasAndNotItsList) {
  Read(
      "step 1\nFatal Python error: Segmentation fault\n\nThread 0x00007fe53f23e700 (most recent call first):\n"
      "  File \"/usr/lib/python3.11/threading.py\", line 327 in wait\n\n"
      "Current thread 0x00007fe53f23eb80 (most recent call first):\n  File \"/home/me/train.py\", line 5 in step\n\n"
      "Extension modules: numpy.core._multiarray_umath, torch._C (total: 2)\n");
  scanner_.Finish();
  EXPECT_EQ(scanner_.last_error_line(), "Fatal Python error: Segmentation fault");
}

TEST_F(LineScannerTest, SaysNothingWhereNothingWasPrinted) {
  Read("\n\r\n   \n");
  scanner_.Finish();
  EXPECT_EQ(scanner_.last_error_line(), "");
}

TEST_F(LineScannerTest, PrefersAnExceptionToTheHintsBelowIt) {
  Read(
      "Traceback (most recent call last):\nRuntimeError: CUDA error: device-side assert triggered\n"
      "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n\nsome library says goodbye\n");
  EXPECT_EQ(scanner_.last_error_line(), "RuntimeError: CUDA error: device-side assert triggered");
}

TEST_F(LineScannerTest, ForgetsAnExceptionThatWasCaughtLongAgo) {
  Read("Traceback (most recent call last):\nValueError: caught\n");
  for (int i = 0; i < 2000; ++i) Read("step " + std::to_string(i) + " loss 0.5\n");
  Read("giving up\n");
  EXPECT_EQ(scanner_.last_error_line(), "giving up");
}

TEST_F(LineScannerTest, ReadsAMessageThatBeginsOnTheNextLine) {
  Read("Traceback (most recent call last):\nAssertionError: \nthe mesh does not fit\n");
  EXPECT_EQ(scanner_.last_error_line(), "AssertionError: the mesh does not fit");
}

TEST_F(LineScannerTest, PutsALineTogetherThatWasCutInTwo) {
  Read("torch.cuda.OutOfMem");
  EXPECT_TRUE(scanner_.Matches().empty());
  Read("oryError: CUDA out of memory.");
  EXPECT_TRUE(scanner_.Matches().empty());
  scanner_.Finish();
  EXPECT_EQ(Rules(), Strings{"CudaOutOfMemory"});
  EXPECT_EQ(scanner_.Matches()[0].offset, 0u);
}

TEST_F(LineScannerTest, StartsANewLineWhereBytesWereLeftOutOrTheFileWasTruncated) {
  scanner_.Feed("CUDA out", 0);
  scanner_.Feed(" of memory\n", 5000);
  scanner_.Feed("new life\n", 0);
  EXPECT_TRUE(scanner_.Matches().empty());
  EXPECT_EQ(scanner_.last_error_line(), "new life");
}

TEST_F(LineScannerTest, RemembersWhatWasSaidShortlyBeforeTheFileWasCut) {
  Read("KeyError: 'old'\n" + std::string(kOldNewsBytes, '.') + "\nMemoryError\n");
  scanner_.Feed("new life\n", 0);
  ASSERT_EQ(Rules(), Strings{"HostMemoryError"});
  EXPECT_EQ(scanner_.Matches()[0].offset, 0u) << "before all that the file says now";
  EXPECT_EQ(scanner_.last_error_line(), "new life");
}

TEST_F(LineScannerTest, ForgetsWhatItIsToldTo) {
  Read("KeyError: 'a'\nKeyError: 'b'\nMemoryError\nstep\n");
  scanner_.Forget(14);
  EXPECT_EQ(Rules(), (Strings{"UserException", "HostMemoryError"}));
  EXPECT_EQ(scanner_.Matches()[0].line, "KeyError: 'b'");
  scanner_.Forget(1000);
  EXPECT_TRUE(scanner_.Matches().empty());
  EXPECT_EQ(scanner_.last_error_line(), "step");
}

TEST_F(LineScannerTest, GivesUpATracebackThatWasCutOff) {
  Read("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n");
  for (int i = 0; i < 5000; ++i) Read("step " + std::to_string(i) + " of 5000\n");
  Read("    raise ConnectionResetError('Connection reset by peer')\n");
  EXPECT_EQ(Rules(), Strings{"PeerConnectionLost"}) << "an indented line, and no frame of anything";
}

TEST_F(LineScannerTest, AsManyLabelsAsThereMayBe) {
  for (int i = 0; i < 1000; ++i) Read("[" + std::to_string(i) + "] step\n");
  Read("[1234] Traceback (most recent call last):\n[1234]   raise KeyError('x')\n[7] step\n[1234] KeyError: 'x'\n");
  EXPECT_EQ(Rules(), Strings{"UserException"});
  EXPECT_EQ(scanner_.last_error_line(), "KeyError: 'x'");
}

TEST_F(LineScannerTest, TakesACarriageReturnForTheEndOfALine) {
  Read("10%\r20%\r30%\rMemoryError\r\n");
  EXPECT_EQ(Rules(), Strings{"HostMemoryError"});
  EXPECT_EQ(scanner_.Matches()[0].offset, 12u);
}

TEST_F(LineScannerTest, SurvivesHolesAndBinaryOutput) {
  Read(std::string(100'000, '\0') + "ValueError: after the hole\n\xff\xfe\x80 noise\n");
  EXPECT_EQ(Rules(), Strings{"UserException"});
  EXPECT_EQ(scanner_.Matches()[0].offset, 100'000u);
  EXPECT_EQ(scanner_.last_error_line(), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD noise");
}

TEST_F(LineScannerTest, BoundsALineOfAMegabyte) {
  Read("ValueError: " + std::string(1'000'000, 'x') + "\nKeyError: 'next'\n");
  ASSERT_EQ(Rules(), (Strings{"UserException", "UserException"}));
  EXPECT_EQ(scanner_.Matches()[0].line.size(), kErrorTextMaxBytes);
  EXPECT_EQ(scanner_.Matches()[1].line, "KeyError: 'next'");
}

TEST_F(LineScannerTest, SeesThroughColoursAndLabels) {
  Read("\x1b[31m[rank3]:\x1b[0m \x1b[1mKeyError\x1b[0m: 'x'\n");
  ASSERT_EQ(Rules(), Strings{"UserException"});
  EXPECT_EQ(scanner_.Matches()[0].line, "KeyError: 'x'");
}

TEST_F(LineScannerTest, DoesNotTakeSourceLinesOfATracebackForErrors) {
  Read(
      "Traceback (most recent call last):\n  File \"net.py\", line 8, in send\n"
      "    raise ConnectionResetError('Connection reset by peer')\nTypeError: no socket\n");
  EXPECT_EQ(Rules(), Strings{"UserException"});
}

TEST_F(LineScannerTest, KnowsThatSemaphoresLiveInSharedMemory) {
  Read(
      "Traceback (most recent call last):\n  File \"synchronize.py\", line 57, in __init__\n"
      "    sl = self._semlock = _multiprocessing.SemLock(\nOSError: [Errno 28] No space left on device\n");
  EXPECT_EQ(Rules(), (Strings{"SharedMemoryExhausted", "DiskFull"}));
}

TEST_F(LineScannerTest, IgnoresWhatLaunchersPrintWhileTheyStopEverybody) {
  Read(
      "ValueError: bad\nWARNING Sending process 197 closing signal SIGTERM\n"
      "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15\n");
  EXPECT_EQ(Rules(), Strings{"UserException"});
  EXPECT_EQ(scanner_.last_error_line(), "ValueError: bad");
}

TEST_F(LineScannerTest, TakesTheFirstExceptionOfAChainForTheCause) {
  Read(
      "Traceback (most recent call last):\nConnectionResetError: [Errno 104] Connection reset by peer\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\nAttributeError: 'NoneType' object has no attribute 'close'\n");
  EXPECT_EQ(Rules(), Strings{"PeerConnectionLost"});
}

TEST_F(LineScannerTest, TakesALaterExceptionOfAChainWhenItSaysMore) {
  Read(
      "Traceback (most recent call last):\nKeyError: 'cache'\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\nOSError: [Errno 28] No space left on device\n");
  EXPECT_EQ(Rules(), (Strings{"UserException", "DiskFull"}));
}

TEST_F(LineScannerTest, KeepsAStrongLineInAFloodOfWeakOnes) {
  for (int i = 0; i < 5000; ++i) Read("recv: Connection reset by peer " + std::to_string(i) + "\n");
  Read("RuntimeError: CUDA error: uncorrectable ECC error encountered\n");
  for (int i = 0; i < 5000; ++i) Read("KeyError: " + std::to_string(i) + "\n");
  EXPECT_EQ(Rules(), (Strings{"PeerConnectionLost", "PeerConnectionLost", "GpuEccUncorrectable", "UserException",
                              "UserException"}));
  EXPECT_EQ(scanner_.Matches()[4].line, "KeyError: 4999");
}

TEST_F(LineScannerTest, KeepsTheEndOfALineThatNeverEnded) {
  Read(std::string(1'000'000, '.') + "CUDA out of memory");
  scanner_.Finish();
  EXPECT_EQ(Rules(), Strings{"CudaOutOfMemory"});
  EXPECT_EQ(scanner_.Matches()[0].offset, 0u);
}

TEST_F(LineScannerTest, FindsAnExceptionGluedToAProgressBar) {
  Read(" 47%|████▋     | 47/100 [00:12<00:13,  4.1it/s]FloatingPointError: invalid value\n");
  EXPECT_EQ(Rules(), Strings{"NumericalError"});
  EXPECT_EQ(scanner_.last_error_line(), "FloatingPointError: invalid value");
}

TEST_F(LineScannerTest, KeepsTracebacksOfSeveralRanksApart) {
  Read(
      "[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n"
      "[rank0]:   File \"a.py\", line 1, in f\n[rank1]:   File \"a.py\", line 1, in f\n"
      "[rank0]: KeyError: 'cache'\n"
      "[rank0]: During handling of the above exception, another exception occurred:\n"
      "[rank1]: ConnectionResetError: [Errno 104] Connection reset by peer\n"
      "[rank0]: Traceback (most recent call last):\n[rank0]: RuntimeError: no cache\n");
  EXPECT_EQ(Rules(), (Strings{"UserException", "PeerConnectionLost"}));
  EXPECT_EQ(scanner_.Matches()[0].line, "KeyError: 'cache'");
}

TEST_F(LineScannerTest, ReadsATracebackThroughALogger) {
  Read(
      "ERROR 03-01 10:00:00 [engine.py:45] Traceback (most recent call last):\n"
      "ERROR 03-01 10:00:00 [engine.py:45]   File \"net.py\", line 8, in send\n"
      "ERROR 03-01 10:00:00 [engine.py:45]     raise ConnectionResetError('Connection reset by peer')\n"
      "ERROR 03-01 10:00:01 [engine.py:45] TypeError: no socket\n");
  EXPECT_EQ(Rules(), Strings{"UserException"});
  EXPECT_EQ(scanner_.last_error_line(), "TypeError: no socket");
}

TEST_F(LineScannerTest, PassesOverExceptionsThatPythonItselfIgnored) {
  Read(
      "Exception ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\n"
      "  File \"pool.py\", line 1, in __del__\nAttributeError: 'Pool' object has no attribute '_cache'\n"
      "--- Logging error ---\nTraceback (most recent call last):\nValueError: I/O operation on closed file.\n");
  EXPECT_TRUE(scanner_.Matches().empty());
  EXPECT_EQ(scanner_.last_error_line(), "");
  Read(
      "Exception ignored in: <function Stream.__del__ at 0x7f>\nTraceback (most recent call last):\n"
      "RuntimeError: CUDA error: uncorrectable ECC error encountered\n");
  EXPECT_EQ(Rules(), Strings{"GpuEccUncorrectable"}) << "the program went on, the device is broken all the same";
}

TEST_F(LineScannerTest, TheExceptionOfADataLoaderIsTheOneThatItHadRaised) {
  Read(
      "Traceback (most recent call last):\nOSError: Caught OSError in DataLoader worker process 2.\n"
      "Original Traceback (most recent call last):\n  File \"d.py\", line 1, in get\n"
      "OSError: [Errno 116] Stale file handle: '/data/a'\n");
  EXPECT_EQ(Rules(), (Strings{"DataLoaderException", "NfsStale"}));
}

TEST_F(LineScannerTest, PassesOverWhatIsTriedAgain) {
  Read("connection refused, retrying in 2 s\nConnection reset by peer; will retry\nstep 3\n");
  EXPECT_TRUE(scanner_.Matches().empty());
}

TEST_F(LineScannerTest, AnyBytesCutAnywhereGiveTheSame) {
  const std::string text =
      "\x1b[31m[rank3]:\x1b[0m Traceback (most recent call last):\r\n[rank3]:   File \"a.py\", line 1\r\n"
      " 10%|█         | 1/10 [00:01<00:09,  1.0it/s]\r 20%|██        | 2/10 [00:02<00:08,  1.0it/s]\r\n"
      "[rank3]: torch.OutOfMemoryError: CUDA out of memory\n\xff\xfe\n" +
      std::string(40'000, 'x') + "\nKeyError: 'k'";
  scanner_.Feed(text, 0);
  scanner_.Finish();
  for (size_t cut = 1; cut < text.size(); cut += text.size() > 500 && cut > 500 ? 997 : 1) {
    LineScanner scanner(matcher_, "rank0.err");
    scanner.Feed(std::string_view(text).substr(0, cut), 0);
    scanner.Feed(std::string_view(text).substr(cut), cut);
    scanner.Finish();
    ASSERT_EQ(scanner.Matches(), scanner_.Matches()) << cut;
    ASSERT_EQ(scanner.last_error_line(), scanner_.last_error_line()) << cut;
  }
  EXPECT_EQ(Rules(), (Strings{"CudaOutOfMemory", "UserException"}));
}

// A double shufti of Vectorscan 5.4.9 passes over the last byte that it is given.
TEST(PatternMatcherTest, FindsWhatEndsWithTheLine) {
  PatternMatcher matcher;
  for (size_t length = 0; length < 300; ++length) {
    const std::string line = "KeyError: " + std::string(length, 'x') + " inf";
    const auto found = matcher.Match(line);
    ASSERT_TRUE(found.line.has_value());
    EXPECT_EQ(matcher.rules().rule(*found.line).code, "NumericalError") << length;
  }
}

TEST(PatternMatcherTest, GoesOnWithoutADatabaseThatIsUnusable) {
  CompiledRules own;
  own.build = ThisBuild();
  own.rules.rules = {Rule{.code = "Own", .message = "Own.", .patterns = {"own words"}}};
  own.patterns.lines = "no database";
  const Result<RulesInForce> rules = RulesInForce::With(own);
  ASSERT_TRUE(rules.has_value());
  PatternMatcher matcher(*rules);
  EXPECT_FALSE(matcher.Match("own words").line.has_value());
  EXPECT_TRUE(matcher.Match("CUDA out of memory").line.has_value());
  EXPECT_NE(matcher.error(), "");
}

// ---- exceptions that nobody's list knows, and launchers' long lines ----

TEST_F(LineScannerTest, WhatTheFramesEndInIsAnExceptionWhateverItIsCalled) {
  for (const std::string exception :
       {"shop.catalog.Sold: item 7", "Misfit: width and height differ", "queue.Full", "Halt",
        "store.quota.exceeded: more than was ordered", "pkg.Outer.Inner: nested"}) {
    LineScanner scanner(matcher_, "rank0.err");
    scanner.Feed("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n" + exception + "\n", 0);
    scanner.Finish();
    ASSERT_EQ(scanner.Matches().size(), 1u) << exception;
    EXPECT_EQ(scanner.Matches()[0].rule, "UserException") << exception;
  }
}

TEST_F(LineScannerTest, OtherPeoplesWordsBehindTheFramesAreNoException) {
  for (const std::string other : {"INFO: saving", "Epoch: 3", "step: 100", "done", "WARNING: slow", "loss: 0.31"}) {
    LineScanner scanner(matcher_, "rank0.err");
    scanner.Feed("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n" + other +
                     "\nConnectionResetError: [Errno 104] Connection reset by peer\n",
                 0);
    scanner.Finish();
    ASSERT_EQ(scanner.Matches().size(), 1u) << other;
    EXPECT_EQ(scanner.Matches()[0].rule, "PeerConnectionLost") << other;
  }
}

TEST_F(LineScannerTest, AnUnknownExceptionOnTopOfALostPeerIsStillTheLostPeer) {
  Read(
      "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n"
      "ConnectionResetError: [Errno 104] Connection reset by peer\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"a.py\", line 9, in h\n    f()\nfeed.Interrupted: no batch\n");
  EXPECT_EQ(Rules(), Strings{"PeerConnectionLost"});
}

TEST_F(LineScannerTest, AChainWhoseSecondTracebackIsNotShownEndsWithItsException) {
  Read(
      "Traceback (most recent call last):\n  File \"hvd.py\", line 8, in synchronize\n    wait(handle)\n"
      "RuntimeError: Horovod has been shut down. This was caused by an exception on one of the ranks\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down\n"
      "Traceback (most recent call last):\n  File \"a.py\", line 9, in h\n    f()\nIndexError: list index out of "
      "range\n");
  EXPECT_EQ(Rules().back(), "UserException");
}

TEST_F(LineScannerTest, AnExceptionThatWasIgnoredWithoutATracebackIsIgnored) {
  Read("Exception ignored in: <function Feed.__del__ at 0x7f>\nBrokenPipeError: [Errno 32] Broken pipe\n");
  EXPECT_TRUE(scanner_.Matches().empty());
}

TEST_F(LineScannerTest, ASentenceOfALauncherMayFillTwoLines) {
  for (const std::string sentence :
       {"prterun noticed that process rank 5 with PID 812 on node gpu-n17 exited on\nsignal 11 (Segmentation fault).\n",
        "mpirun noticed that process rank 5 with PID 0 on node\nn17.cluster.local exited on signal 11 (Segmentation "
        "fault).\n"}) {
    for (const Reading reading : {Reading::kSuspectLines, Reading::kEveryLine}) {
      LineScanner scanner(matcher_, "rank0.err", reading);
      std::string text;
      for (int i = 0; i < 200; ++i) text += "epoch done in a while\n";
      scanner.Feed(text + sentence + "goodbye\n", 0);
      scanner.Finish();
      ASSERT_EQ(scanner.Matches().size(), 1u) << sentence;
      EXPECT_EQ(scanner.Matches()[0].rule, "SegmentationFault");
      EXPECT_EQ(scanner.Matches()[0].offset, text.size());
      EXPECT_NE(scanner.Matches()[0].line.find("process rank 5"), std::string::npos);
    }
  }
}

TEST_F(LineScannerTest, ASentenceThatIsNotEndedChangesNothing) {
  Read("prterun noticed that process rank 5 with PID 812 on node gpu-n17 exited on\nKeyError: 'a'\n");
  EXPECT_EQ(Rules(), Strings{"UserException"});
}

TEST_F(LineScannerTest, AHealthCheckThatFindsNothingIsNoFailure) {
  Read("health: uncorrectable ECC errors: 0\npolicy: restart on [NodeNotReady, Evicted]\nKeyError: 'a'\n");
  EXPECT_EQ(Rules(), Strings{"UserException"});
}

}  // namespace
}  // namespace aimaster
