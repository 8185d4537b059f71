// Golden cases: what ranks printed and how they ended, and what has to be concluded. Each file in tests/data/judge is
// one accident; a new kind of failure begins with a new file there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "detect/line_scanner.h"
#include "detect/root_cause.h"

namespace aimaster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<fs::path> CaseFiles() {
  const char* source = std::getenv("AIMASTER_SOURCE");
  std::vector<fs::path> files;
  if (!source) return files;
  for (const auto& entry : fs::directory_iterator(fs::path(source) / "tests/data/judge")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

RankFailure ReadFailure(const json& rank, PatternMatcher& matcher) {
  RankFailure failure;
  failure.rank = Rank{rank.at("rank").get<uint32_t>()};
  failure.instance = InstanceIndex{Value(failure.rank)};
  failure.node = NodeIndex{rank.value("node", 0u)};
  failure.stopped_by_us = rank.value("stopped_by_us", false);
  failure.lost_reason = rank.value("lost", "");
  failure.node_lost = !failure.lost_reason.empty();
  if (failure.lost_reason.empty()) {
    failure.exit = RankExit{};
    if (rank.contains("code")) failure.exit->code = rank["code"].get<int>();
    if (rank.contains("signal")) failure.exit->signal = rank["signal"].get<int>();
    failure.exit->out_of_memory = rank.value("out_of_memory", false);
    failure.exit->time = Wall{std::chrono::milliseconds(rank.at("ms").get<int64_t>())};
  }
  LineScanner scanner(matcher, "rank" + std::to_string(Value(failure.rank)) + ".err");
  std::string text;
  for (const json& line : rank.value("output", json::array())) text += line.get<std::string>() + "\n";
  scanner.Feed(text, 0);
  scanner.Finish();
  failure.matches = scanner.Matches();
  failure.last_error_line = scanner.last_error_line();
  return failure;
}

TEST(JudgeGoldenTest, EveryCaseIsConcludedAsItsFileSays) {
  PatternMatcher matcher;
  const std::vector<fs::path> files = CaseFiles();
  ASSERT_GT(files.size(), 0u) << "run under ctest, or set AIMASTER_SOURCE to the source tree";
  for (const fs::path& file : files) {
    SCOPED_TRACE(file.filename().string());
    const json accident = json::parse(std::ifstream(file));
    std::vector<RankFailure> failures;
    for (const json& rank : accident.at("failures")) failures.push_back(ReadFailure(rank, matcher));
    const Judgement judgement = Judge(failures, accident.at("ranks").get<uint32_t>());

    const json& expect = accident.at("expect");
    json actual = {{"fault", judgement.fault},
                   {"retryable", Name(judgement.retryable)},
                   {"category", judgement.category},
                   {"message", judgement.message},
                   {"source", Name(judgement.source)},
                   {"node_suspect", judgement.node_suspect},
                   {"root_rank", nullptr}};
    if (judgement.root_rank) actual["root_rank"] = Value(*judgement.root_rank);
    EXPECT_EQ(actual, expect);
  }
}

}  // namespace
}  // namespace aimaster
