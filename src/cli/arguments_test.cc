#include "cli/arguments.h"

#include <gtest/gtest.h>

#include <array>

namespace aimaster::cli {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 2> kSizes = {"small", "large"};
constexpr std::array kOptions = {
    Option{.name = "--follow", .short_name = "-f", .help = "go on"},
    Option{.name = "--lines", .short_name = "-n", .value = "N", .help = "how many"},
    Option{.name = "--env", .value = "K=V", .help = "a variable", .repeatable = true},
    Option{.name = "--size", .value = "SIZE", .help = "how large", .choices = kSizes},
};
const Command kStart = {.name = "start",
                        .operands = "-- CMD…",
                        .operands_max = SIZE_MAX,
                        .options = kOptions,
                        .takes_parameters = TakesParameters::kYes,
                        .operands_end_options = true};
const Command kShow = {.name = "show", .operands = "JOB", .operands_min = 1, .operands_max = 1, .options = kOptions};

Arguments Parse(const Command& command, const Words& words) {
  Result<Arguments> parsed = ParseArguments(command, words);
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  return parsed.value_or(Arguments{});
}

std::string Refusal(const Command& command, const Words& words) {
  const Result<Arguments> parsed = ParseArguments(command, words);
  EXPECT_FALSE(parsed.has_value());
  if (parsed) return "";
  EXPECT_EQ(parsed.error().kind, ErrorKind::kUsage);
  return parsed.error().message;
}

TEST(Arguments, AValueStandsBehindAnEqualsSignOrInTheNextWord) {
  for (const Words& words : {Words{"--lines=5", "job"}, Words{"--lines", "5", "job"}, Words{"-n5", "job"},
                             Words{"-n", "5", "job"}, Words{"job", "-n", "5"}}) {
    const Arguments arguments = Parse(kShow, words);
    EXPECT_EQ(arguments.Text("--lines"), "5");
    EXPECT_EQ(arguments.operands, Words{"job"});
  }
}

TEST(Arguments, AValueMayBeNegativeOrEmptyButIsNeverTheNextOption) {
  EXPECT_EQ(Parse(kShow, {"--lines", "-1", "job"}).Text("--lines"), "-1");
  const Arguments empty = Parse(kShow, {"--size=small", "--env=", "job"});
  EXPECT_EQ(empty.Texts("--env"), Words{""});
  EXPECT_NE(Refusal(kShow, {"--lines", "--follow", "job"}).find("--lines needs a value"), std::string::npos);
  EXPECT_NE(Refusal(kShow, {"job", "--lines"}).find("--lines needs a value"), std::string::npos);
  EXPECT_NE(Refusal(kStart, {"--lines", "--", "python"}).find("--lines needs a value"), std::string::npos);
}

TEST(Arguments, EverythingBehindTheDashesBelongsToTheCommand) {
  const Arguments arguments = Parse(kStart, {"-f", "--", "--strange", "-n", "--", "--follow"});
  EXPECT_EQ(arguments.operands, (Words{"--strange", "-n", "--", "--follow"}));
  EXPECT_TRUE(arguments.Has("--follow"));
}

TEST(Arguments, WithoutDashesTheCommandBeginsAtItsFirstWord) {
  const Arguments arguments =
      Parse(kStart, {"--workers", "2", "python", "train.py", "--lines", "3", "--help", "--", "-x"});
  EXPECT_EQ(arguments.operands, (Words{"python", "train.py", "--lines", "3", "--help", "--", "-x"}));
  EXPECT_FALSE(arguments.Has("--lines"));
  EXPECT_FALSE(arguments.Has(kHelpOption));
}

TEST(Arguments, ParametersOfTheTableKeepTheNameThatWasWritten) {
  const Arguments arguments = Parse(kStart, {"--execution-mode=sync", "--max-tolerated-failure-rate", "-1", "--", "x"});
  ASSERT_EQ(arguments.parameters.size(), 2u);
  EXPECT_EQ(arguments.parameters[0].name, "execution-mode");
  EXPECT_EQ(arguments.parameters[0].value, "sync");
  EXPECT_EQ(arguments.parameters[1].value, "-1");
}

TEST(Arguments, AParameterWithoutAValueSaysWhatIsAllowed) {
  EXPECT_NE(Refusal(kStart, {"--enable-job-restart", "--", "x"}).find("True, False"), std::string::npos);
}

TEST(Arguments, AnIgnoredFlagTakesAValueOnlyWhereItLooksLikeOne) {
  EXPECT_EQ(Parse(kStart, {"--kubeflow", "True", "x"}).operands, Words{"x"});
  EXPECT_EQ(Parse(kStart, {"--kubeflow", "x"}).operands, Words{"x"});
}

TEST(Arguments, AnUnknownOptionNamesTheNearestOne) {
  EXPECT_NE(Refusal(kStart, {"--wrokers", "2", "--", "x"}).find("did you mean --workers?"), std::string::npos);
  EXPECT_NE(Refusal(kShow, {"--folow", "job"}).find("did you mean --follow?"), std::string::npos);
  EXPECT_NE(Refusal(kShow, {"--whatever", "job"}).find("aimaster help show"), std::string::npos);
}

TEST(Arguments, AParameterIsNoOptionOfACommandThatTakesNone) {
  EXPECT_NE(Refusal(kShow, {"--workers", "2", "job"}).find("--workers"), std::string::npos);
}

TEST(Arguments, TheSameOptionTwiceIsAContradictionUnlessItRepeats) {
  EXPECT_EQ(Parse(kShow, {"--env", "A=1", "--env", "B=2", "job"}).Texts("--env"), (Words{"A=1", "B=2"}));
  EXPECT_EQ(Parse(kShow, {"-n", "1", "-n", "1", "job"}).Text("--lines"), "1");
  EXPECT_NE(Refusal(kShow, {"-n", "1", "-n", "2", "job"}).find("given twice"), std::string::npos);
}

TEST(Arguments, AChoiceIsOneOfItsChoices) {
  EXPECT_EQ(Parse(kShow, {"--size", "large", "job"}).Text("--size"), "large");
  EXPECT_NE(Refusal(kShow, {"--size", "huge", "job"}).find("small, large"), std::string::npos);
}

TEST(Arguments, ASwitchTakesNoValue) {
  EXPECT_NE(Refusal(kShow, {"--follow=yes", "job"}).find("takes no value"), std::string::npos);
}

TEST(Arguments, OperandsAreCounted) {
  EXPECT_NE(Refusal(kShow, {}).find("aimaster show JOB"), std::string::npos);
  EXPECT_NE(Refusal(kShow, {"one", "two"}).find("'two'"), std::string::npos);
}

TEST(Arguments, HelpWinsOverEverythingThatIsMissing) {
  EXPECT_TRUE(Parse(kShow, {"--help"}).Has(kHelpOption));
  EXPECT_TRUE(Parse(kStart, {"-h"}).Has(kHelpOption));
}

TEST(Arguments, NumbersAreWholeAndInRange) {
  const Arguments arguments = Parse(kShow, {"-n", "12", "job"});
  EXPECT_EQ(arguments.Number("--lines", 0, 100).value(), 12u);
  EXPECT_FALSE(arguments.Number("--lines", 0, 11).has_value());
  EXPECT_EQ(arguments.Number("--size", 0, 1).value(), std::nullopt);
  for (const char* bad : {"-1", "1x", "", "1.5", "99999999999999999999999"}) {
    EXPECT_FALSE(Parse(kShow, {std::string("--lines=") + bad, "job"}).Number("--lines", 0, UINT64_MAX).has_value())
        << bad;
  }
}

}  // namespace
}  // namespace aimaster::cli
