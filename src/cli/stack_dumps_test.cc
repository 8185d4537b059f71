#include "cli/stack_dumps.h"

#include <gtest/gtest.h>

#include <fstream>

#include "journal/temporary_directory.h"
#include "stacks/document.h"
#include "stacks/groups.h"

namespace aimaster::cli {
namespace {

std::string Write(const TemporaryDirectory& directory, const std::string& name, const std::string& text) {
  const std::string path = directory.path() / name;
  std::ofstream(path) << text;
  return path;
}

std::string DumpAt(const std::string& function) {
  return "Current thread 0x1 (most recent call first):\n  File \"train.py\", line 7 in " + function + "\n";
}

TEST(StackDumpsTest, TheRankOfADumpIsInItsName) {
  EXPECT_EQ(RankInName("dumps/rank12.txt"), 12u);
  EXPECT_EQ(RankInName("job17_rank-3.node4.json"), 3u);
  EXPECT_EQ(RankInName("/tmp/44/7.txt"), 7u);
  EXPECT_EQ(RankInName("ranks/stack"), std::nullopt);
  EXPECT_EQ(RankInName("node1-gpu2.txt"), std::nullopt) << "which of them?";
  EXPECT_EQ(RankInName(""), std::nullopt);
}

TEST(StackDumpsTest, DumpsOfManyRanksAreOneCapture) {
  const TemporaryDirectory directory;
  std::vector<std::string> files;
  for (int rank = 0; rank < 4; ++rank) {
    files.push_back(Write(directory, "rank" + std::to_string(rank) + ".txt", DumpAt(rank == 2 ? "load" : "step")));
  }
  const auto capture = MergeDumpFiles(files);
  ASSERT_TRUE(capture) << capture.error().message;
  EXPECT_EQ(stacks::OneLine(*capture, stacks::GroupStacks(*capture)), "rank 2 is alone at load (train.py:7)");
}

TEST(StackDumpsTest, CapturesOfOursAreTakenToo) {
  const TemporaryDirectory directory;
  const auto first = MergeDumpFiles({Write(directory, "rank0.txt", DumpAt("step"))});
  const auto both = MergeDumpFiles(
      {Write(directory, "1.json", stacks::FormatDocument(*first)), Write(directory, "rank1.txt", DumpAt("load"))});
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(stacks::GroupStacks(*both).answered.Text(), "0-1");
}

TEST(StackDumpsTest, WithoutANameThePlaceCounts) {
  const TemporaryDirectory directory;
  const auto capture =
      MergeDumpFiles({Write(directory, "a.txt", DumpAt("step")), Write(directory, "b.txt", DumpAt("step"))});
  EXPECT_EQ(stacks::GroupStacks(*capture).answered.Text(), "0-1");
}

TEST(StackDumpsTest, AFileThatIsNoDumpIsNamed) {
  const TemporaryDirectory directory;
  const auto nothing = MergeDumpFiles({Write(directory, "rank0.txt", "loss 0.3\n")});
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("rank0.txt"), std::string::npos);
  EXPECT_NE(nothing.error().message.find("'loss 0.3'"), std::string::npos);
  EXPECT_FALSE(MergeDumpFiles({directory.path() / "absent"}));
}

}  // namespace
}  // namespace aimaster::cli
