// Feeds the pickle reader with anything. A cut one must give a part of what the whole gives.
#include <cstddef>
#include <cstdint>

#include "c4d/limits.h"
#include "c4d/pickle_reader.h"
#include "core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aimaster;
  using namespace aimaster::c4d;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const size_t length : {size, size / 2}) {
    const Result<DataTree> tree = ReadPickle(bytes.substr(0, length));
    if (!tree || tree->nodes.empty()) continue;
    CHECK(tree->nodes.size() <= kNodesMax && tree->root < tree->nodes.size());
    for (const DataNode& node : tree->nodes) {
      CHECK(node.items.empty() || IsContainer(node));
      CHECK(node.kind != DataKind::kDict || node.items.size() % 2 == 0);
      for (const uint32_t item : node.items) CHECK(item < tree->nodes.size());
    }
  }
  return 0;
}
