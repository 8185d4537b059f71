// Feeds the parsers of tools' words with anything, and what they make of it through all that follows.
#include <cstddef>
#include <cstdint>

#include "core/check.h"
#include "core/quote.h"
#include "stacks/document.h"
#include "stacks/dump_parsers.h"
#include "stacks/render.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aimaster;
  using namespace aimaster::stacks;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto parse :
       {&ParsePySpyJson, &ParsePySpyText, &ParsePystack, &ParseFaulthandler, &ParseEuStack, &ParseGdb}) {
    CaptureBuilder builder;
    for (const ProcessDump& dump : parse(text)) {
      CHECK(dump.threads.size() <= kThreadsPerProcessMax);
      for (const Thread& thread : dump.threads) {
        CHECK(thread.frames.size() <= kFramesPerStackMax && IsPrintable(thread.name));
        for (const Frame& frame : thread.frames) CHECK(IsPrintable(frame.function) && IsPrintable(frame.file));
      }
      builder.Add({.node = "n", .instance = "i", .rank = 0, .pid = dump.pid, .command = dump.command}, dump.threads);
    }
    const Capture capture = builder.Take();
    CHECK(ParseDocument(FormatDocument(capture)).has_value());
    FormatText(capture, {});
    FormatTree(capture, {.all = true});
    FormatDot(capture, true);
  }
  (void)ParseDump(text).has_value();
  return 0;
}
