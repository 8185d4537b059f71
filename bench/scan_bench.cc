// How fast the log scanner is, beside what people would take in its place: `grep -F -f`, `rg -F -f` and a loop over
// Python's `re`, over the same gigabyte of a training's log, by turns in one run.
//
// We read with all rules, keep their matches and the last telling line; the others only look for plain words out of the
// same rules and count lines. What is compared is processor time: all of them take one core, and other work on the
// machine counts for nobody.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "detect/line_scanner.h"
#include "detect/pattern_literals.h"
#include "training_log.h"

namespace aimaster {
namespace {

constexpr int kRounds = 3;
constexpr size_t kChunkBytes = 256 << 10;  // as the agent reads
constexpr size_t kPythonBytes = 256 << 10;

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "scan_bench: %s\n", what.c_str());
  std::exit(1);
}

// Processor seconds of a child that does `work`.
double TimeOf(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) Die("a measured process failed");
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

// As a program of its own, which writes into a file: a grep that sees /dev/null stops at the first match.
double TimeOf(std::vector<std::string> words) {
  return TimeOf([&words] {
    const int output = memfd_create("output", 0);
    dup2(output, STDOUT_FILENO);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    setenv("LC_ALL", "C", 1);
    execvp(argv[0], argv.data());
    _exit(127);
  });
}

void Scan(const std::string& path, Reading reading, bool tell) {
  PatternMatcher matcher;
  LineScanner scanner(matcher, "rank0.err", reading);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string chunk(kChunkBytes, '\0');
  uint64_t offset = 0;
  for (ssize_t got = 0; (got = read(file, chunk.data(), chunk.size())) > 0; offset += static_cast<uint64_t>(got)) {
    scanner.Feed(std::string_view(chunk).substr(0, static_cast<size_t>(got)), offset);
  }
  scanner.Finish();
  if (tell) {
    std::printf("found %zu telling lines of %zu rules; last line: %.60s\n\n", scanner.Matches().size(),
                static_cast<size_t>(matcher.rules().size()), scanner.last_error_line().c_str());
  }
}

std::set<std::string> Words() {
  std::set<std::string> words;
  for (const Pattern& pattern : ListPatterns(RuleTable::BuiltIn().set())) {
    if (pattern.kind != PatternKind::kLine) continue;
    if (const auto literals = RequiredLiterals(pattern.text))
      words.insert(literals->texts.begin(), literals->texts.end());
  }
  return words;
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << text)) Die("cannot write " + path + ": set TMPDIR to a directory with two gigabytes of room");
}

constexpr const char* kPython = R"(
import re, sys
words = [line.rstrip("\n") for line in open(sys.argv[1])]
pattern = re.compile("|".join(map(re.escape, words)).encode())
print(sum(1 for line in open(sys.argv[2], "rb") if pattern.search(line)))
)";

struct Contender {
  std::string name;
  uint64_t bytes = 0;
  std::function<double()> run;
  double best = 1e9;
};

void MeasureLoading() {
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) {
    const auto began = std::chrono::steady_clock::now();
    PatternMatcher matcher;
    matcher.Match("a line");
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
  }
  std::ranges::sort(times);
  std::printf("databases of all rules loaded and used once: median %.2f ms, first %.2f ms\n", times[times.size() / 2],
              times.front());
}

int Main() {
  const char* size = std::getenv("AIMASTER_SCAN_BENCH_MB");
  const uint64_t bytes = (size ? std::strtoull(size, nullptr, 10) : 1000) * 1'000'000;
  const char* place = std::getenv("TMPDIR");
  std::string folder = std::string(place ? place : "/tmp") + "/aimaster-scan-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) Die("cannot make " + folder);
  const std::string log = folder + "/log", sample = folder + "/sample", words = folder + "/words",
                    script = folder + "/script.py";
  {
    TrainingLog training(1);
    std::ofstream file(log, std::ios::binary);
    for (uint64_t written = 0; written < bytes;) {
      const std::string text = training.Next(std::min<uint64_t>(bytes - written, 8 << 20));
      if (written == 0) Write(sample, text.substr(0, text.rfind('\n', kPythonBytes) + 1));
      if (!(file << text)) Die("cannot write " + log + ": set TMPDIR to a directory with two gigabytes of room");
      written += text.size();
    }
  }
  const auto size_of = [](const std::string& path) {
    return static_cast<uint64_t>(std::ifstream(path, std::ios::ate | std::ios::binary).tellg());
  };
  std::string list;
  for (const std::string& word : Words()) list += word + "\n";
  Write(words, list);
  Write(script, kPython);

  MeasureLoading();
  Scan(log, Reading::kSuspectLines, true);
  const uint64_t all = size_of(log);
  std::vector<Contender> contenders = {
      {"aimaster, all rules", all, [&] { return TimeOf([&] { Scan(log, Reading::kSuspectLines, false); }); }},
      {"aimaster, reading every line", all, [&] { return TimeOf([&] { Scan(log, Reading::kEveryLine, false); }); }},
      {"grep -F -f", all, [&] { return TimeOf({"grep", "-F", "-c", "-f", words, log}); }},
      {"rg -F -f", all, [&] { return TimeOf({"rg", "-F", "-c", "-j", "1", "--no-config", "-f", words, log}); }},
      {"python3 re", size_of(sample), [&] { return TimeOf({"python3", script, words, sample}); }},
      {"cat (reading alone)", all, [&] { return TimeOf({"cat", log}); }},
  };
  for (int round = 0; round < kRounds; ++round) {
    for (Contender& each : contenders) each.best = std::min(each.best, each.run());
  }
  const double ours = static_cast<double>(contenders[0].bytes) / contenders[0].best;
  std::printf("%-32s %12s %10s %14s\n", "best of 3 rounds, one core", "bytes", "GB/s", "aimaster is");
  for (const Contender& each : contenders) {
    const double speed = static_cast<double>(each.bytes) / each.best;
    std::printf("%-32s %12llu %10.3f %11.1f x\n", each.name.c_str(), static_cast<unsigned long long>(each.bytes),
                speed / 1e9, ours / speed);
  }
  for (const std::string& file : {log, sample, words, script}) unlink(file.c_str());
  rmdir(folder.c_str());
  return 0;
}

}  // namespace
}  // namespace aimaster

int main() { return aimaster::Main(); }
