// What a person sees.
#include "stacks/render.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "stacks/stacks_test_support.h"

namespace aimaster::stacks {
namespace {

Capture Hang() {
  Capture capture = OneOf(4, 2);
  capture.number = 1;
  capture.time_ns = 1'700'000'000'000'000'000;
  capture.reason = "asked for by aimaster stacks";
  return capture;
}

TEST(RenderTest, TheCulpritIsInTheFirstLineAndTheFirstGroup) {
  EXPECT_EQ(FormatText(Hang(), {}),
            "Rank 2 is alone at load_batch (train.py:41); 3 of 4 ranks wait for others\n"
            "stacks of 4 ranks, taken at 2023-11-14T22:13:20.000Z, capture 1 (asked for by aimaster stacks)\n"
            "\n"
            "1 of 4 ranks: 2\n"
            "      clock_nanosleep (libc.so.6)\n"
            "    > load_batch (train.py:41)   /home/me/train.py\n"
            "      <module> (train.py:80)\n"
            "  rank 2, job-worker-2 on node-1, process 1002, thread 0 MainThread\n"
            "\n"
            "3 of 4 ranks: 0-1,3, waits for other ranks\n"
            "      pthread_cond_wait (libc.so.6)\n"
            "      all_reduce (distributed_c10d.py:2221)\n"
            "    > step (train.py:60)   /home/me/train.py\n"
            "      <module> (train.py:80)\n"
            "  rank 0, job-worker-0 on node-0, process 1000, thread 0 MainThread\n"
            "  rank 1, job-worker-1 on node-0, process 1001, thread 0 MainThread\n"
            "  rank 3, job-worker-3 on node-1, process 1003, thread 0 MainThread\n"
            "\n"
            "1 of 4 ranks: 0, in the background\n"
            "      poll (libc.so.6)\n"
            "    > TCPStoreMasterDaemon::run (libtorch_cpu.so)   /opt/torch/libtorch_cpu.so\n"
            "  rank 0, job-worker-0 on node-0, process 1000, thread 9 store\n"
            "\n"
            "4 idle threads in 1 place where every rank has one left out (--all shows them)\n");
}

TEST(RenderTest, WithAllNothingIsLeftOut) {
  const std::string text = FormatText(Hang(), {.all = true});
  EXPECT_NE(text.find("4 of 4 ranks: 0-3, waits for work, in the background\n      sem_wait"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("left out"), std::string::npos);
}

TEST(RenderTest, ColoursAreForTerminals) {
  EXPECT_EQ(FormatText(Hang(), {}).find('\x1b'), std::string::npos);
  EXPECT_TRUE(FormatText(Hang(), {.colours = true}).starts_with("\x1b[1;31mRank 2 is alone"));
}

TEST(RenderTest, RanksWithoutStacksAreNamedWithTheReasonOnce) {
  CaptureBuilder builder;
  builder.Add(OfRank(0), std::vector{MainThread(InLoad())});
  for (uint32_t rank = 1; rank < 4; ++rank) {
    Origin missing = OfRank(rank);
    missing.trouble = "its node did not answer";
    builder.Add(missing, {});
  }
  const std::string text = FormatText(builder.Take(), {});
  EXPECT_NE(text.find("stacks of 1 of 4 ranks\nno stack of ranks 1-3: its node did not answer\n"), std::string::npos)
      << text;
}

TEST(RenderTest, ALongRunOfNativeFramesIsOneLine) {
  std::vector<Frame> frames = {kModule};
  for (int i = 0; i < 40; ++i) frames.push_back(Native("at::native::f" + std::to_string(i), "/usr/lib/libtorch.so"));
  CaptureBuilder builder;
  builder.Add(OfRank(0), std::vector{MainThread(frames)});
  const Capture capture = builder.Take();
  const std::string text = FormatText(capture, {});
  EXPECT_LT(std::ranges::count(text, '\n'), 12) << text;
  EXPECT_NE(text.find("at::native::f39"), std::string::npos) << "where it is\n" << text;
  const std::string all = FormatText(capture, {.all = true});
  EXPECT_NE(all.find("at::native::f20"), std::string::npos) << all;
}

TEST(RenderTest, TheTreePartsWhereRanksPart) {
  EXPECT_EQ(FormatTree(Hang(), {}),
            "[0]  TCPStoreMasterDaemon::run (libtorch_cpu.so)\n"
            "     poll (libc.so.6)\n"
            "[0-3]  <module> (train.py:80)\n"
            "  [2]  load_batch (train.py:41)\n"
            "       clock_nanosleep (libc.so.6)\n"
            "  [0-1,3]  step (train.py:60)\n"
            "           all_reduce (distributed_c10d.py:2221)\n"
            "           pthread_cond_wait (libc.so.6)\n");
}

TEST(RenderTest, FoldedIsWhatFlameGraphsAreMadeOf) {
  const std::string folded = FormatFolded(Hang(), false);
  EXPECT_TRUE(folded.starts_with("<module> (train.py:80);load_batch (train.py:41);clock_nanosleep (libc.so.6) 1\n"))
      << folded;
  EXPECT_EQ(std::ranges::count(folded, '\n'), 3);
  EXPECT_EQ(std::ranges::count(FormatFolded(Hang(), true), '\n'), 4);
}

TEST(RenderTest, DotIsAGraph) {
  const std::string dot = FormatDot(Hang(), false);
  EXPECT_TRUE(dot.starts_with("digraph stacks {\n")) << dot;
  EXPECT_NE(dot.find("[label=\"0-1,3\"]"), std::string::npos) << dot;
  EXPECT_TRUE(dot.ends_with("}\n"));
}

TEST(RenderTest, ACaptureOfNothingSaysSo) {
  const Capture nothing;
  EXPECT_TRUE(FormatText(nothing, {}).starts_with("No stack could be taken\n"));
  EXPECT_EQ(FormatTree(nothing, {}), "");
  EXPECT_EQ(FormatFolded(nothing, true), "");
}

}  // namespace
}  // namespace aimaster::stacks
