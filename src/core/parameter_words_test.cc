#include "core/parameter_words.h"

#include <gtest/gtest.h>

#include "core/parameter_table.h"

namespace aimaster {
namespace {

// "name:value" of each parameter with a bar between; or the error.
std::string Shown(const Result<std::vector<GivenParameter>>& given) {
  if (!given) return "error: " + given.error().message;
  std::string text;
  for (const GivenParameter& one : *given) text += (text.empty() ? "" : "|") + one.name + ":" + one.value;
  return text;
}
std::string Split(std::string_view text) { return Shown(SplitParameterString(text)); }
std::string SplitArguments(const std::vector<std::string>& arguments) {
  return Shown(SplitParameterArguments(arguments));
}

TEST(ParameterWordsTest, EqualsAndBlankMeanTheSame) {
  EXPECT_EQ(Split("--workers=2 --devices 0"), "workers:2|devices:0");
  EXPECT_EQ(Split("--max-tolerated-failure-rate -1 --workers 2"), "max-tolerated-failure-rate:-1|workers:2");
  EXPECT_EQ(Split("--max-tolerated-failure-rate=-1"), "max-tolerated-failure-rate:-1");
  EXPECT_EQ(Split("--c4d-common-envs=A=1,B=2"), "c4d-common-envs:A=1,B=2");
}

TEST(ParameterWordsTest, BlanksOfAllKindsSeparate) {
  EXPECT_EQ(Split(""), "");
  EXPECT_EQ(Split(" \t\r\n "), "");
  EXPECT_EQ(Split("  --workers=2 \t\n\n --devices   0  "), "workers:2|devices:0");
  EXPECT_EQ(Split("\ufeff--workers=2\u00a0--devices\u30000"), "workers:2|devices:0");
}

TEST(ParameterWordsTest, AContinuedLineIsABlankHoweverItArrives) {
  for (const char* text :
       {"--workers=2 \\\n  --devices=0", "--workers=2\\\n--devices=0", "--workers=2 \\\r\n--devices=0",
        "--workers=2 \\  \n--devices=0", "--workers=2 \\ --devices=0", "--workers=2 --devices=0 \\"}) {
    EXPECT_EQ(Split(text), "workers:2|devices:0") << text;
  }
}

TEST(ParameterWordsTest, QuotesKeepWordsTogether) {
  EXPECT_EQ(Split("--c4d-common-envs 'A=1, B=2'"), "c4d-common-envs:A=1, B=2");
  EXPECT_EQ(Split("--c4d-common-envs=\"A=1, B=2\""), "c4d-common-envs:A=1, B=2");
  EXPECT_EQ(Split("'--workers=2'"), "workers:2");
  EXPECT_EQ(Split("--c4d-common-envs ''"), "c4d-common-envs:");
  EXPECT_EQ(Split("--c4d-common-envs='A=\"x\\y'"), "c4d-common-envs:A=\"x\\y");
  EXPECT_EQ(Split("--c4d-common-envs=\"A=\\\"x\\\\y\\z'\""), "c4d-common-envs:A=\"x\\y\\z'");
  EXPECT_EQ(Split("--c4d-common-envs=A=\\\"x$HOME*#"), "c4d-common-envs:A=\"x$HOME*#");
}

TEST(ParameterWordsTest, AnOpenQuoteIsAnError) {
  EXPECT_EQ(Split("--workers='2"), "error: a quote (') is never closed, from here on: ''2'");
  EXPECT_EQ(Split("--workers \"2\\\""), "error: a quote (\") is never closed, from here on: '\"2\\\"'");
}

TEST(ParameterWordsTest, AKnownParameterNeedsItsValue) {
  const std::string error =
      "error: --enable-job-restart has no value; allowed: True, False (as in --enable-job-restart=True)";
  EXPECT_EQ(Split("--enable-job-restart"), error);
  EXPECT_EQ(Split("--enable-job-restart --workers=2"), error);
  EXPECT_EQ(SplitArguments({"--enable-job-restart", "--"}), error);
}

TEST(ParameterWordsTest, NoValueIsNotTheEmptyValue) {
  EXPECT_EQ(Split("--c4d-common-envs="), "c4d-common-envs:");
  EXPECT_EQ(Split("--c4d-common-envs"),
            "error: --c4d-common-envs has no value; allowed: NAME=VALUE,NAME=VALUE (as in "
            "--c4d-common-envs=C4D_HANG_TIMEOUT=10s,C4D_HANG_TIMES=18)");
  for (const Parameter& parameter : ParameterTable()) {
    const bool may_stand_alone = parameter.group == ParameterGroup::kIgnored;
    EXPECT_EQ(SplitParameterString("--" + std::string(parameter.name)).has_value(), may_stand_alone) << parameter.name;
  }
}

TEST(ParameterWordsTest, AnIgnoredFlagMayStandAlone) {
  EXPECT_EQ(Split("--kubeflow --workers=2"), "kubeflow:|workers:2");
  EXPECT_EQ(Split("--kubeflow True --enable-perftracker"), "kubeflow:True|enable-perftracker:");
}

TEST(ParameterWordsTest, StrayWordsAreNamed) {
  EXPECT_EQ(Split("Sync"),
            "error: unexpected 'Sync': parameters are written --name=value; a value with blanks needs quotes");
  EXPECT_EQ(Split("--devices=0, 1"),
            "error: unexpected '1' behind --devices: parameters are written --name=value; a value with blanks needs "
            "quotes");
  EXPECT_EQ(Split("–workers=2"),
            "error: unexpected '–workers=2': its dash is a typographic one; a parameter starts with two plain hyphens, "
            "--");
  for (const char* text : {"--", "--=1", "-", "=", "-workers=2", "--workers=2 --"}) {
    EXPECT_TRUE(Split(text).starts_with("error: unexpected ")) << Split(text);
  }
}

TEST(ParameterWordsTest, TheStringHasALimit) {
  const std::string longest = "--kubeflow=" + std::string(kParameterStringMaxBytes - 11, 'x');
  EXPECT_TRUE(SplitParameterString(longest));
  EXPECT_EQ(Split(longest + "x"), "error: the parameters are 65537 bytes long; allowed: at most 65536");
}

TEST(ParameterWordsTest, ArgumentsAreNotSplitAgain) {
  EXPECT_EQ(SplitArguments({"--c4d-common-envs", "A=1, B='2'"}), "c4d-common-envs:A=1, B='2'");
  EXPECT_EQ(SplitArguments({"--max-tolerated-failure-rate", "-1"}), "max-tolerated-failure-rate:-1");
}

TEST(ParameterWordsTest, QuotedWordsComeBack) {
  for (const char* word : {"", "plain", "a b", "it's", "\"", "\\", "a\\", "\\\\'\"", "\u00a0", "a\u3000b", "\n"}) {
    const std::string text = "--kubeflow " + QuoteParameterWord(word);
    EXPECT_EQ(Split(text), "kubeflow:" + std::string(word)) << text;
  }
  EXPECT_EQ(QuoteParameterWord("--workers=2"), "--workers=2");
}

}  // namespace
}  // namespace aimaster
