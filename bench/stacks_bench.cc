// Puts the stacks of a large job together: 10,000 ranks of 20 threads on 1,250 nodes, as their agents send them, up to
// the text that a person reads. A rank hangs alone; of the others each has its own threads in the background.
//
// Times are of the processor: there is one thread that waits for nothing, and on a busy machine a clock on the wall
// says little about it.
#include <sys/resource.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "stacks/document.h"
#include "stacks/render.h"

namespace {

using namespace aimaster::stacks;
constexpr uint32_t kNodes = 1250, kRanksPerNode = 8, kThreads = 20, kDepth = 40;

Frame FrameAt(const std::string& library, uint32_t line) {
  return {.function = library + "::function_" + std::to_string(line),
          .file = "/opt/conda/lib/python3.11/site-packages/" + library + "/module_" + std::to_string(line % 7) + ".py",
          .line = line,
          .language = line % 3 == 0 ? Language::kPython : Language::kNative};
}

std::vector<Frame> StackOf(uint32_t kind, uint32_t leaf) {
  std::vector<Frame> frames;
  for (uint32_t i = 0; i + 1 < kDepth; ++i) frames.push_back(FrameAt("library_" + std::to_string(kind), i + 1));
  frames.push_back(FrameAt("leaf", leaf));
  return frames;
}

std::string DocumentOf(uint32_t node) {
  CaptureBuilder builder;
  for (uint32_t local = 0; local < kRanksPerNode; ++local) {
    const uint32_t rank = node * kRanksPerNode + local;
    std::vector<Thread> threads;
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      // Threads that poll are somewhere else in each rank.
      const uint32_t leaf = thread % 5 == 4 ? rank % 97 : 1;
      threads.push_back({.id = 100 + thread,
                         .name = thread == 0 ? "MainThread" : "thread " + std::to_string(thread),
                         .is_waiting = thread != 0,
                         .holds_gil = false,
                         .frames = StackOf(thread == 0 && rank == 4711 ? 99 : thread, leaf)});
    }
    builder.Add({.node = "node-" + std::to_string(node),
                 .instance = "dlc0123456789abc-worker-" + std::to_string(rank),
                 .rank = rank,
                 .pid = 100,
                 .is_child = false,
                 .command = "python3",
                 .tool = "py-spy",
                 .trouble = {}},
                threads);
  }
  return FormatDocument(builder.Take());
}

double Milliseconds(std::clock_t since) { return 1000.0 * static_cast<double>(std::clock() - since) / CLOCKS_PER_SEC; }

double PeakMegabytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

int main() {
  std::vector<std::string> documents;
  size_t bytes = 0;
  for (uint32_t node = 0; node < kNodes; ++node) bytes += documents.emplace_back(DocumentOf(node)).size();
  std::printf("%u ranks of %u threads on %u nodes, %zu KiB from all agents\n", kNodes * kRanksPerNode, kThreads, kNodes,
              bytes >> 10);

  const auto began = std::clock();
  CaptureBuilder builder;
  double reading = 0;
  for (const std::string& document : documents) {
    const auto read_began = std::clock();
    const auto capture = ParseDocument(document);
    reading += Milliseconds(read_began);
    if (!capture) return 1;
    builder.Add(*capture);
  }
  const Capture capture = builder.Take();
  const double merged = Milliseconds(began);
  const Grouping grouping = GroupStacks(capture);
  const double grouped = Milliseconds(began);
  const std::string text = FormatText(capture, {});
  const double shown = Milliseconds(began);
  std::printf("read %.0f ms, merged %.0f ms, grouped %.0f ms: %.0f ms in all; text %.0f ms more\n", reading,
              merged - reading, grouped - merged, grouped, shown - grouped);
  const auto stored_began = std::clock();
  const size_t stored = FormatDocument(capture).size();
  std::printf("document of the job: %zu KiB, written in %.0f ms\n", stored >> 10, Milliseconds(stored_began));
  std::printf("peak memory %.0f MB\n", PeakMegabytes());
  std::printf("%s\n", OneLine(capture, grouping).c_str());
  return 0;
}
