#include "cli/help.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/text.h"

namespace aimaster::cli {
namespace {

TEST(Help, TheDocsPageIsWhatTheProgramSays) {
  const char* source = std::getenv("AIMASTER_SOURCE");
  ASSERT_NE(source, nullptr) << "run by ctest, or set AIMASTER_SOURCE to the repository's root";
  const std::string path = std::string(source) + "/docs/cli.md";
  if (std::getenv("AIMASTER_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << CommandLinePage();
  std::ifstream file(path);
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(page, CommandLinePage()) << "docs/cli.md is not up to date: run this test with AIMASTER_UPDATE_GOLDEN=1";
}

TEST(Help, EveryCommandSaysWhatItDoesInTextThatFits) {
  for (const Command* command : Commands()) {
    const std::string help = CommandHelp(*command, Terminal{.is_terminal = true, .width = 80});
    EXPECT_FALSE(command->summary.empty() || command->details.empty() || command->examples.empty()) << command->name;
    EXPECT_FALSE(command->summary.ends_with('.')) << command->name;
    EXPECT_NE(command->run, nullptr);
    for (const Option& option : command->options) EXPECT_NE(help.find(option.name), std::string::npos) << option.name;
  }
}

TEST(Help, TheOverviewNamesEveryCommand) {
  const std::string help = OverviewHelp(Terminal{});
  for (const Command* command : Commands()) EXPECT_NE(help.find(command->summary), std::string::npos) << command->name;
  EXPECT_EQ(help.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace aimaster::cli
