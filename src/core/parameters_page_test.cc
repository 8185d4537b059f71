// docs/parameters.md is written by the program. With AIMASTER_UPDATE_GOLDEN=1 this test writes it again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/parameter_page.h"

namespace aimaster {
namespace {

TEST(ParametersPageTest, ThePageInTheDocsIsUpToDate) {
  const char* source = std::getenv("AIMASTER_SOURCE");
  ASSERT_NE(source, nullptr) << "set AIMASTER_SOURCE to the root of the source, as ctest does";
  const std::string path = std::string(source) + "/docs/parameters.md";
  const char* update = std::getenv("AIMASTER_UPDATE_GOLDEN");
  if (update != nullptr && std::string_view(update) == "1") std::ofstream(path) << ParametersMarkdown();
  std::ifstream file(path);
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(page, ParametersMarkdown()) << "the table has changed; run this test with AIMASTER_UPDATE_GOLDEN=1 and "
                                           "commit docs/parameters.md";
}

TEST(ParametersPageTest, EveryNameIsOnThePageAndInTheText) {
  const std::string page = ParametersMarkdown();
  const std::string text = ParametersText();
  for (const Parameter& parameter : ParameterTable()) {
    EXPECT_NE(page.find("`--" + std::string(parameter.name) + "`"), std::string::npos) << parameter.name;
    EXPECT_NE(text.find("\n--" + std::string(parameter.name)), std::string::npos) << parameter.name;
    for (const std::string_view alias : parameter.aliases) {
      EXPECT_NE(page.find("`--" + std::string(alias) + "`"), std::string::npos) << alias;
      EXPECT_NE(text.find("--" + std::string(alias)), std::string::npos) << alias;
    }
  }
}

TEST(ParametersPageTest, TheTextFitsATerminal) {
  const std::string text = ParametersText();
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    EXPECT_LE(end - start, 140u) << text.substr(start, end - start);
    start = end + 1;
  }
}

TEST(ParametersPageTest, ADescriptionHasWhatAFormNeeds) {
  const std::vector<ParameterDescription> all = DescribeParameters();
  ASSERT_EQ(all.size(), ParameterTable().size());
  const ParameterDescription& mode = all.front();
  EXPECT_EQ(mode.name, "job-execution-mode");
  EXPECT_EQ(mode.type, "choice");
  EXPECT_EQ(mode.group, "restart");
  EXPECT_EQ(mode.default_text, "Sync");
  EXPECT_EQ(mode.choices, (std::vector<std::string>{"Sync", "Async"}));
  EXPECT_EQ(mode.aliases, (std::vector<std::string>{"execution-mode"}));
  EXPECT_FALSE(mode.ignored);
  EXPECT_TRUE(all.back().ignored);
}

}  // namespace
}  // namespace aimaster
