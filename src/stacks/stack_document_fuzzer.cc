// Reads anything as a document of call stacks; what is accepted can be shown, bounded, and written again.
#include <cstddef>
#include <cstdint>

#include "core/check.h"
#include "stacks/document.h"
#include "stacks/render.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aimaster;
  using namespace aimaster::stacks;
  const Result<Capture> capture = ParseDocument({reinterpret_cast<const char*>(data), size});
  if (!capture) return 0;
  FormatText(*capture, {.all = true});
  FormatFolded(*capture, true);
  FormatJson(*capture);
  const std::string again = FormatDocument(*capture);
  const Result<Capture> read = ParseDocument(again);
  CHECK(read && FormatDocument(*read) == again);
  CaptureBuilder builder;
  builder.Add(*capture);
  builder.Add(*capture);
  CHECK(builder.capture().threads.size() == 2 * capture->threads.size());
  const size_t half = again.size() / 2 + 200;
  CHECK(FormatDocument(Bounded(*capture, half)).size() <= half || Bounded(*capture, half).processes.empty());
  return 0;
}
