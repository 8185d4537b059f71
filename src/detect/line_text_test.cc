#include "detect/line_text.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

std::string Clean(std::string_view line) {
  std::string buffer;
  return std::string(CleanLine(line, buffer));
}

TEST(CleanLineTest, LeavesAnOrdinaryLineWhereItIs) {
  const std::string_view line = "  File \"train.py\", line 3";
  std::string buffer;
  EXPECT_EQ(CleanLine(line, buffer).data(), line.data());
}

TEST(CleanLineTest, TakesColoursAndTitlesOut) {
  EXPECT_EQ(Clean("\x1b[1;31mValueError\x1b[0m: bad"), "ValueError: bad");
  EXPECT_EQ(Clean("\x1b]0;a title\aValueError"), "ValueError");
  EXPECT_EQ(Clean("\x1b]8;;http://x\x1b\\link"), "link");
  EXPECT_EQ(Clean("cut off \x1b[3"), "cut off");
}

TEST(CleanLineTest, MakesBrokenBytesShowable) {
  EXPECT_EQ(Clean("caf\xc3\xa9"), "café");
  EXPECT_EQ(Clean("caf\xe9!"), "caf\xEF\xBF\xBD!");
  EXPECT_EQ(Clean("\xc0\xaf"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "overlong";
  EXPECT_EQ(Clean("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "a surrogate";
  EXPECT_EQ(Clean("a\x01\x7f"
                  "b"),
            "a  b");
  EXPECT_EQ(Clean("loss 1.5 \t "), "loss 1.5");
  EXPECT_EQ(Clean("ETA: 5s\b\b\b\b\b\b\bdone"), "done") << "a bar that is drawn with backspaces";
  EXPECT_EQ(Clean("\b\bé\bx"), "x");
}

TEST(StripRankPrefixesTest, KnowsTheLabelsOfLaunchers) {
  EXPECT_EQ(StripRankPrefixes("[rank3]: ValueError: x"), "ValueError: x");
  EXPECT_EQ(StripRankPrefixes("[rank13]:[E218 04:54] late"), "[E218 04:54] late");
  EXPECT_EQ(StripRankPrefixes("[default3]:Traceback"), "Traceback");
  EXPECT_EQ(StripRankPrefixes("[1,3]<stderr>:boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("worker-0: boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("(TrainWorker pid=77) boom"), "boom");
  EXPECT_EQ(StripRankPrefixes(" 7: [rank80]: boom"), "boom");
}

TEST(StripRankPrefixesTest, KnowsTheLabelsOfMoreLaunchersAndCollectors) {
  EXPECT_EQ(StripRankPrefixes("[trainer12]:boom"), "boom") << "torchrun, by role";
  EXPECT_EQ(StripRankPrefixes("[rank: 3] boom"), "boom") << "Lightning";
  EXPECT_EQ(StripRankPrefixes("[3] boom"), "boom") << "MPICH, mpirun -l";
  EXPECT_EQ(StripRankPrefixes("[0]<stderr>:boom"), "boom") << "horovodrun";
  EXPECT_EQ(StripRankPrefixes("[prterun-gpu-07-811@1,3]<stderr>: boom"), "boom") << "OpenMPI 5";
  EXPECT_EQ(StripRankPrefixes("Sat Mar  1 10:00:00 2025[1,3]<stderr>:boom"), "boom") << "with a date";
  EXPECT_EQ(StripRankPrefixes("node01: boom"), "boom") << "pdsh";
  EXPECT_EQ(StripRankPrefixes("10.0.0.4: boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("gpu-3.cluster.local: boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("(RayTrainWorker pid=811, ip=10.0.0.4) [rank3]: boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("[pod/worker-0/pytorch] boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("worker_1    | boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("2025-03-01T10:00:00.123456789Z [rank3]: boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("2025-03-01T10:00:00.1+08:00 stderr F boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("2025-03-01 10:00:00 [rank3]: boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("2025-03-01 10:00:00,123 [rank: 3] boom"), "boom");
  constexpr std::string_view kLogger = "2025-03-01 10:00:00 [12] ERROR boom";
  EXPECT_EQ(StripRankPrefixes(kLogger), kLogger) << "a number alone may be a thread's";
}

TEST(StripRankPrefixesTest, TakesOffProgressBarsThatTextIsGluedTo) {
  EXPECT_EQ(StripRankPrefixes("Epoch 3:  47%|████▋     | 470/1000 [01:12<01:21,  6.51it/s, loss=0.7]ValueError: bad"),
            "ValueError: bad");
  EXPECT_EQ(StripRankPrefixes(" 25%|██▌ | 5.00/20.0 [1:04:24<3:07:19, 749s/it][rank0]: boom"), "boom");
  const std::string_view bar = "100%|██████████| 170M/170M [00:05<00:00, 29.8MB/s]";
  EXPECT_EQ(StripRankPrefixes(bar), bar) << "a bar alone is what was printed last";
}

TEST(SplitRankLabelsTest, SaysWhoseLineItIsWithoutTheTime) {
  EXPECT_EQ(SplitRankLabels("2025-03-01T10:00:00Z [rank3]: boom").label, "[rank3]:");
  EXPECT_EQ(SplitRankLabels("node01: [default0]: boom").label, "node01: [default0]:");
  EXPECT_EQ(SplitRankLabels("boom").label, "");
}

TEST(StripRankPrefixesTest, KeepsIndentationAndWhatOnlyLooksLikeALabel) {
  EXPECT_EQ(StripRankPrefixes("[rank0]:   File \"a.py\""), "  File \"a.py\"");
  EXPECT_EQ(StripRankPrefixes("worker-0:15325:16199 [2] NCCL INFO"), "worker-0:15325:16199 [2] NCCL INFO");
  EXPECT_EQ(StripRankPrefixes("KeyError: 'x'"), "KeyError: 'x'");
  EXPECT_EQ(StripRankPrefixes("[ranking]: first"), "[ranking]: first");
  EXPECT_EQ(StripRankPrefixes("[12:30]: noon"), "[12:30]: noon");
  for (std::string_view line : {"python3: can't open file 'a.py'", "torch.cuda.OutOfMemoryError: CUDA", "error: 3",
                                "1.5: half", "2025-03-01 10:00:00 step", "sh: 1: torchrun: not found", "a | b"}) {
    EXPECT_EQ(StripRankPrefixes(line), line);
  }
}

TEST(OneLineTest, JoinsAndCutsBetweenCharacters) {
  EXPECT_EQ(OneLine("a\n\tb   c\r\n", 100), "a b c");
  EXPECT_EQ(OneLine("ééééé", 8), "éé…");
  EXPECT_EQ(OneLine("", 8), "");
  EXPECT_EQ(OneLine(std::string(100'000, 'x'), 4096).size(), 4096u);
}

}  // namespace
}  // namespace aimaster
