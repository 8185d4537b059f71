#include "c4d/json_tree.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "c4d/limits.h"

namespace aimaster::c4d {
namespace {

using nlohmann::json;

// Called by the parser, which keeps no stack of its own beyond a bit for each level. Returning false ends it.
class TreeBuilder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Add({}); }
  bool boolean(bool value) override { return Add({.kind = DataKind::kBool, .integer = value ? 1 : 0}); }
  bool number_integer(int64_t value) override { return Add({.kind = DataKind::kInteger, .integer = value}); }
  bool number_unsigned(uint64_t value) override {
    if (value > INT64_MAX) return Add({.kind = DataKind::kReal, .real = static_cast<double>(value)});
    return Add({.kind = DataKind::kInteger, .integer = static_cast<int64_t>(value)});
  }
  bool number_float(double value, const std::string& /*written*/) override {
    return Add({.kind = DataKind::kReal, .real = value});
  }
  bool string(std::string& value) override { return Add({.kind = DataKind::kText, .text = Keep(value)}); }
  bool binary(json::binary_t& /*value*/) override { return Add({}); }
  bool start_object(size_t /*size*/) override { return Open(DataKind::kDict); }
  bool key(std::string& name) override { return Add({.kind = DataKind::kText, .text = Keep(name)}); }
  bool end_object() override { return Close(); }
  bool start_array(size_t /*size*/) override { return Open(DataKind::kList); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string& /*token*/, const json::exception& /*error*/) override {
    error_at_ = position;
    return false;
  }

  Result<DataTree> Take(size_t size) {
    if (!refusal_.empty()) return Fail(ErrorKind::kEnvironment, std::move(refusal_));
    if (error_at_) {
      tree_.trouble = *error_at_ > size ? "it is cut short" : "it is damaged at byte " + std::to_string(*error_at_ - 1);
      // A key that has no value yet is none, and a number that ends with the file may go on.
      for (const uint32_t open : open_) {
        DataNode& node = tree_.nodes[open];
        if (node.kind == DataKind::kDict && node.items.size() % 2 != 0) node.items.pop_back();
        node.is_whole = false;
      }
    }
    return std::move(tree_);
  }

 private:
  std::string_view Keep(std::string& text) { return tree_.own_texts.emplace_back(std::move(text)); }

  bool Add(DataNode node) {
    if (tree_.nodes.size() == kNodesMax) {
      refusal_ = "holds more than " + std::to_string(kNodesMax) + " values";
      return false;
    }
    tree_.nodes.push_back(std::move(node));
    if (!open_.empty()) tree_.nodes[open_.back()].items.push_back(static_cast<uint32_t>(tree_.nodes.size() - 1));
    return true;
  }

  bool Open(DataKind kind) {
    if (open_.size() == kDepthMax) {
      refusal_ = "is nested deeper than " + std::to_string(kDepthMax);
      return false;
    }
    if (!Add({.kind = kind})) return false;
    open_.push_back(static_cast<uint32_t>(tree_.nodes.size() - 1));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  DataTree tree_;
  std::vector<uint32_t> open_;
  std::optional<size_t> error_at_;
  std::string refusal_;
};

}  // namespace

bool LooksLikeJson(std::string_view bytes) {
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] == '{';
}

Result<DataTree> ReadJsonTree(std::string_view bytes) {
  TreeBuilder builder;
  json::sax_parse(bytes, &builder, json::input_format_t::json, /*strict=*/true);
  return builder.Take(bytes.size());
}

}  // namespace aimaster::c4d
