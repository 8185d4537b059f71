// Who reads only suspect lines has to find what the one finds who reads them all, whatever is printed and however it
// arrives. The ingredients are the examples of all rules, lines of healthy jobs, and all that happens to lines on their
// way: labels, colours, backspaces, broken bytes, bars, cuts, holes.
#include "detect/suspect_lines.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "detect/expression_text.h"
#include "detect/line_scanner.h"
#include "detect/line_text.h"

namespace aimaster {
namespace {

std::filesystem::path RulesFolder() {
  const char* source = std::getenv("AIMASTER_SOURCE");
  return std::filesystem::path(source ? source : ".") / "rules";
}

std::vector<std::string> ExampleLines() {
  std::vector<std::string> all;
  const YAML::Node examples = YAML::LoadFile((RulesFolder() / "examples.yaml").string());
  for (const char* kind : {"rules", "frames"}) {
    for (const auto& [code, lines] : examples[kind].as<std::map<std::string, std::vector<std::string>>>()) {
      all.insert(all.end(), lines.begin(), lines.end());
    }
  }
  return all;
}

std::vector<std::string> OrdinaryLines() {
  std::vector<std::string> all;
  std::ifstream file(RulesFolder() / "ordinary.txt");
  for (std::string line; std::getline(file, line);) all.push_back(line);
  for (const char* of_mpirun :
       {"mpirun noticed that process rank 2 with PID 0 on node vm exited on signal 9 (Killed).", "Exit code:    3",
        "Please see the FAQ page for debugging suggestions", "----------------------------------------"}) {
    all.emplace_back(of_mpirun);
  }
  return all;
}

// What a machine full of ranks may print.
class Printer {
 public:
  explicit Printer(uint32_t seed) : random_(seed) {}

  std::string Print(size_t lines) {
    std::string text;
    while (lines-- > 0) {
      text += Label();
      text += Dirtied(Body());
      text += OneOf<std::string>({"\n", "\n", "\n", "\n", "\r\n", "\r", std::string(1 + Below(5), '\0')});
    }
    return text;
  }

  template <typename T>
  const T& OneOf(const std::vector<T>& items) {
    return items[Below(items.size())];
  }
  size_t Below(size_t limit) { return random_() % limit; }

 private:
  std::string Label() {
    static const std::vector<std::string> kLabels = {"",
                                                     "",
                                                     "",
                                                     "[rank3]: ",
                                                     "[rank5]:",
                                                     "[1,3]<stderr>:",
                                                     "worker-0: ",
                                                     "(Actor pid=12) ",
                                                     "2025-03-01T10:00:00.123Z stderr F ",
                                                     "ERROR 03-01 10:00:00 [engine.py:45] ",
                                                     " 47%|██▋ | 47/100 [00:12<00:13, 4.1it/s]"};
    return OneOf(kLabels) + (Below(60) == 0 ? "[" + std::to_string(Below(400)) + "] " : "");
  }

  std::string Body() {
    static const std::vector<std::string> kExamples = ExampleLines(), kOrdinary = OrdinaryLines();
    static const std::vector<std::string> kTracebacks = {
        "Traceback (most recent call last):",
        "  File \"/app/train.py\", line 3, in <module>",
        "    raise ConnectionResetError('Connection reset by peer')",
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
        "Exception ignored in: <function f>",
        "--- Logging error ---",
        "ValueError: bad",
        "ValueError:",
        "custom.Strange",
        "loss: 0.5",
        "    indented words",
        "",
        "   ",
        "------------"};
    switch (Below(12)) {
      case 0:
        return OneOf(kExamples);
      case 1:
        return OneOf(kTracebacks);
      case 2:
        return Below(4) == 0 ? std::string(Below(40'000), 'x') + OneOf(kExamples) + std::string(Below(9000), 'y')
                             : OneOf(kOrdinary);
      case 3:
        return Below(3) == 0 ? "KeyError: " + OneOf(kOrdinary) : OneOf(kOrdinary);
      default:
        return OneOf(kOrdinary);
    }
  }

  std::string Dirtied(std::string line) {
    for (size_t times = Below(8) == 0 ? 1 + Below(4) : 0; times > 0; --times) {
      static const std::vector<std::string> kDirt = {"\x1b[31m", "\x1b[0m", "\x1b]0;t\a", "\x1b[3", "\b",
                                                     "\b\b\b",   "\x01",    "\x7f",       "\xff",   "\xe2\x96",
                                                     "é",        "\t",      "\x1b"};
      line.insert(Below(line.size() + 1), OneOf(kDirt));
    }
    return line;
  }

  std::mt19937 random_;
};

std::vector<std::string> Shown(const LineScanner& scanner) {
  std::vector<std::string> shown;
  for (const LineMatch& match : scanner.Matches()) {
    shown.push_back(std::to_string(match.offset) + " " + match.rule + " " + match.line.substr(0, 50) + " ... " +
                    std::to_string(match.line.size()));
  }
  return shown;
}

void ExpectTheSame(const LineScanner& quick, const LineScanner& thorough) {
  EXPECT_EQ(Shown(quick), Shown(thorough));
  EXPECT_EQ(quick.last_error_line(), thorough.last_error_line());
}

TEST(SuspectLinesTest, TheQuickReaderFindsWhatTheThoroughOneFinds) {
  PatternMatcher matcher;
  size_t found = 0;
  for (uint32_t seed = 0; seed < 3000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Printer printer(seed);
    LineScanner quick(matcher, "rank0.err"), thorough(matcher, "rank0.err", Reading::kEveryLine);
    uint64_t offset = 0;
    for (size_t chunks = 1 + printer.Below(4); chunks > 0; --chunks) {
      const std::string text = printer.Print(printer.Below(300));
      const size_t step = 1 + printer.Below(printer.Below(2) == 0 ? 200 : text.size() + 1);
      for (size_t at = 0; at < text.size(); at += step) {
        const std::string_view piece = std::string_view(text).substr(at, step);
        quick.Feed(piece, offset);
        thorough.Feed(piece, offset);
        offset += piece.size();
      }
      ExpectTheSame(quick, thorough);
      if (printer.Below(10) == 0) offset += printer.Below(100'000);                 // a hole
      if (printer.Below(10) == 0) offset = printer.Below(2) == 0 ? 0 : offset / 2;  // cut off by its program
    }
    quick.Finish();
    thorough.Finish();
    ExpectTheSame(quick, thorough);
    found += quick.Matches().size();
  }
  EXPECT_GT(found, 10'000u) << "the printer has to print what rules know";
}

TEST(SuspectLinesTest, EachPatternsOwnTextIsSuspect) {
  PatternMatcher matcher;
  SuspectLines suspects(matcher);
  std::mt19937 numbers(1);
  const RandomNumber random = [&numbers] { return static_cast<uint32_t>(numbers()); };
  size_t tried = 0, matched = 0;
  for (const Pattern& pattern : ListPatterns(matcher.rules().set())) {
    if (pattern.kind != PatternKind::kLine) continue;
    bool has_matched = false;
    for (int i = 0; i < 40; ++i) {
      const std::string line = TextFor(pattern.text, random);
      if (matcher.Match(line).line != pattern.rule) continue;
      has_matched = true;
      const std::string text = "step 1\n" + line + "\nstep 2\n";
      const auto lines = suspects.In(text);
      ASSERT_TRUE(lines.has_value());
      EXPECT_TRUE(std::ranges::find(*lines, LineRange{7, 7 + line.size()}) != lines->end())
          << "pattern " << pattern.text << " matches " << line;
    }
    ++tried;
    matched += has_matched ? 1 : 0;
  }
  EXPECT_GT(matched * 100, tried * 80) << matched << " of " << tried << " patterns have shown what they match";
}

TEST(SuspectLinesTest, OrdinaryLinesAreNotSuspect) {
  PatternMatcher matcher;
  SuspectLines suspects(matcher);
  std::string text;
  for (int step = 0; step < 1000; ++step) {
    text += "iteration " + std::to_string(step) + " | lm loss: 2.1E+00 | \x1b[32mlearning rate: 2.4E-04\x1b[0m |\n";
  }
  const auto lines = suspects.In(text);
  ASSERT_TRUE(lines.has_value());
  EXPECT_TRUE(lines->empty());
}

TEST(SuspectLinesTest, AWordThatColoursInterruptIsFound) {
  PatternMatcher matcher;
  SuspectLines suspects(matcher);
  const std::string line = "CUDA \x1b[31mout\x1b[0m of mem\x1b[1mory";
  const std::string text = "a\n" + line + "\rb\n";
  const auto lines = suspects.In(text);
  ASSERT_TRUE(lines.has_value());
  EXPECT_EQ(std::vector<LineRange>(lines->begin(), lines->end()), (std::vector<LineRange>{{2, 2 + line.size()}}));
}

}  // namespace
}  // namespace aimaster
