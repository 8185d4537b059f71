// What people are told of a master that could not run.
#include "cli/launch_master.h"

#include <gtest/gtest.h>

#include "journal/temporary_directory.h"

namespace aimaster::cli {
namespace {

TEST(LastLogLineTest, TheMastersReasonCountsAndNotThatItsSupervisorTriesAgain) {
  const TemporaryDirectory directory;
  directory.Write("aimaster.log",
                  "begins\ncannot run: the disk is full\naimaster-shim: job: ended with code 79, starting it again\n");
  EXPECT_EQ(LastLogLine(directory.path()), "cannot run: the disk is full");
}

TEST(LastLogLineTest, ASupervisorThatCouldNotStartAMasterSaysSoItself) {
  const TemporaryDirectory directory;
  directory.Write("aimaster.log", "aimaster-shim: job: cannot run /bin/aimaster: No such file or directory\n");
  EXPECT_EQ(LastLogLine(directory.path()), "aimaster-shim: job: cannot run /bin/aimaster: No such file or directory");
}

TEST(LastLogLineTest, TheSameWordsAreTheSameWheneverTheyAreSaid) {
  const TemporaryDirectory directory;
  directory.Write("aimaster.log", "2026-11-30T01:32:08.229Z cannot run: the disk is full\n");
  EXPECT_EQ(LastLogLine(directory.path()), "cannot run: the disk is full");
}

TEST(LastLogLineTest, NoLogIsNoLine) { EXPECT_EQ(LastLogLine(TemporaryDirectory().path()), ""); }

}  // namespace
}  // namespace aimaster::cli
