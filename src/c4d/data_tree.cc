#include "c4d/data_tree.h"

#include <charconv>

namespace aimaster::c4d {

bool IsContainer(const DataNode& node) {
  return node.kind == DataKind::kList || node.kind == DataKind::kTuple || node.kind == DataKind::kDict;
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

const DataNode* DataTree::Find(const DataNode& dict, std::string_view key) const {
  if (dict.kind != DataKind::kDict) return nullptr;
  // Of a key that was given twice the last counts, as in the languages that write these files.
  for (size_t i = dict.items.size() / 2; i-- > 0;) {
    const DataNode& name = nodes[dict.items[2 * i]];
    if (name.kind == DataKind::kText && name.text == key) return &nodes[dict.items[2 * i + 1]];
  }
  return nullptr;
}

std::string_view DataTree::TextOf(const DataNode* node) const {
  return node != nullptr && node->kind == DataKind::kText ? node->text : std::string_view();
}

std::optional<int64_t> DataTree::IntegerOf(const DataNode* node) const {
  if (node == nullptr) return std::nullopt;
  if (node->kind == DataKind::kInteger) return node->integer;
  return node->kind == DataKind::kText ? ParseInteger(node->text) : std::nullopt;
}

std::optional<bool> DataTree::BoolOf(const DataNode* node) const {
  if (node == nullptr || node->kind != DataKind::kBool) return std::nullopt;
  return node->integer != 0;
}

const std::vector<uint32_t>& DataTree::ItemsOf(const DataNode* node) const {
  static const std::vector<uint32_t> kNothing;
  const bool is_list = node != nullptr && (node->kind == DataKind::kList || node->kind == DataKind::kTuple);
  return is_list ? node->items : kNothing;
}

}  // namespace aimaster::c4d
