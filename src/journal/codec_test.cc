#include "journal/codec.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "journal/codec_harness.h"

namespace aimaster {
namespace {

// The same values in every run.
struct CountingSource {
  int64_t Number(int64_t min, int64_t max) {
    ++count;
    return min == max - 1 ? max : min < 0 ? -count : std::min(max, min + count % 97);
  }
  std::string Text() { return "text " + std::to_string(++count); }
  int64_t count = 0;
};

template <typename T>
T One() {
  CountingSource source;
  return Filler<CountingSource>(source).Make<T>();
}

template <size_t kIndex = 0>
void AddInputs(std::string& lines) {
  if constexpr (kIndex < std::variant_size_v<Event>) {
    lines += EncodeInput({One<Moment>(), Event(One<std::variant_alternative_t<kIndex, Event>>())}) + "\n";
    AddInputs<kIndex + 1>(lines);
  }
}

// One of everything that is stored, as it is written today.
std::string EverythingWritten() {
  std::string lines;
  AddInputs(lines);
  lines += EncodeJobSpec(One<JobSpec>()) + "\n";
  lines += Encode(One<JobSummary>()) + "\n" + Encode(One<InstanceState>()) + "\n" + Encode(One<NodeState>()) + "\n";
  lines += Encode(One<RoundState>()) + "\n" + Encode(One<RestartRecord>()) + "\n" + Encode(One<Decision>()) + "\n";
  lines += Encode(One<JobEvent>()) + "\n" + Encode(One<RankFailure>()) + "\n" + Encode(One<StateRest>()) + "\n";
  return lines + Encode(One<StoredState>()) + "\n";
}

std::filesystem::path GoldenFile() {
  const char* source = std::getenv("AIMASTER_SOURCE");
  return std::filesystem::path(source == nullptr ? "." : source) / "tests/data/journal/format_1.jsonl";
}

// Journals outlive programs. When this fails, a journal that exists would be read wrongly: add fields under new names,
// and only then set AIMASTER_UPDATE_GOLDEN=1 to have the additions written.
TEST(Codec, NamesAndFormsOfAllThatIsStoredStay) {
  if (std::getenv("AIMASTER_UPDATE_GOLDEN") != nullptr) std::ofstream(GoldenFile()) << EverythingWritten();
  std::ifstream file(GoldenFile());
  ASSERT_TRUE(file) << GoldenFile();
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(EverythingWritten(), golden.str());
}

TEST(Codec, WhatANewerProgramAddedIsPassedOver) {
  const Result<Input> input = DecodeInput(
      R"({"kind":"NodeLost","at":{"monotonic_ns":1,"wall_ns":2,"sun_ns":3},"node":4,"reason":"r","colour":"red"})");
  ASSERT_TRUE(input) << input.error().message;
  EXPECT_EQ(*input, (Input{{Monotonic{Duration{1}}, Wall{Duration{2}}}, NodeLost{NodeIndex{4}, "r"}}));
}

TEST(Codec, WhatAnOlderProgramDidNotKnowHasItsDefault) {
  const Result<Input> input = DecodeInput(R"({"kind":"StopRequested","at":{"wall_ns":2}})");
  ASSERT_TRUE(input) << input.error().message;
  EXPECT_EQ(input->event, Event(StopRequested{}));
}

TEST(Codec, AnErrorSaysWhereItIs) {
  const auto message = [](std::string_view text) {
    const Result<Input> input = DecodeInput(text);
    return input ? "it was taken" : input.error().message;
  };
  EXPECT_EQ(message(R"({"kind":"RankFailed","at":{},"failure":{"exit":{"code":"seven"}}})"),
            "failure: exit: code: an integer is expected");
  EXPECT_EQ(message(R"({"kind":"RankFailed","at":{},"failure":{"rank":-1}})"),
            "failure: rank: an integer out of range");
  EXPECT_EQ(message(R"({"kind":"RankFailed","at":{},"failure":{"rank":4294967296}})"),
            "failure: rank: an integer out of range");
  EXPECT_EQ(message(R"({"kind":"FailureJudged","at":{},"judgement":{"severity":"mild"}})"),
            "judgement: severity: unknown name 'mild'");
  EXPECT_EQ(message(R"({"kind":"FailureJudged","at":{},"judgement":{"severity":99}})"),
            "judgement: severity: a name is expected");
  EXPECT_EQ(message(R"({"kind":"Tick"})"), "not an input");
  EXPECT_EQ(message(R"([])"), "not an input");
  EXPECT_EQ(message(R"({"kind":"Teleported","at":{}})"), "unknown input 'Teleported'");
}

TEST(Codec, TheWordForNoStateIsNoState) {
  const Result<InstanceState> instance = DecodeInstance(R"({"status":"unknown"})");
  ASSERT_FALSE(instance);
  EXPECT_EQ(instance.error().message, "status: unknown name 'unknown'");
}

TEST(Codec, ArgumentsThatAreNotUtf8ReachTheRankAsTheyWere) {
  JobSpec spec = One<JobSpec>();
  spec.command = {"python", "caf\xe9.py", std::string("nul\0byte", 8)};
  spec.environment = {{"\xff\xfe", "\xc0\xaf"}};
  EXPECT_EQ(DecodeJobSpec(EncodeJobSpec(spec)), spec);
}

TEST(Codec, DeepNestingIsJustAnError) {
  const std::string deep = R"({"kind":"Tick","at":)" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  EXPECT_FALSE(DecodeInput(deep));
}

}  // namespace
}  // namespace aimaster
