// DataTree: what a file of plain data holds, whether it was a pickle or JSON, and which parts of it are whole.
//
// The nodes stand in one list and name each other by number. A pickle may refer to one value from many places, even to
// a list from within itself; numbers make a reference cost four bytes, where copies would let a kilobyte grow into
// gigabytes. Whoever reads a tree goes down by the names that it expects, never through all of it.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aimaster::c4d {

enum class DataKind : uint8_t { kNone, kBool, kInteger, kReal, kText, kBytes, kList, kTuple, kDict };

struct DataNode {
  DataKind kind = DataKind::kNone;
  // Of a container: nothing is missing of itself; those within speak for themselves.
  bool is_whole = true;
  int64_t integer = 0;          // of kInteger and kBool
  double real = 0;              // of kReal, which integers beyond 64 bits become as well
  std::string_view text;        // of kText and kBytes, in the file or in own_texts
  std::vector<uint32_t> items;  // of containers; of a dict keys and values in turn
};

struct DataTree {
  std::vector<DataNode> nodes;        // empty: there was nothing
  std::deque<std::string> own_texts;  // those that do not stand in the file as they are
  uint32_t root = 0;
  // Why the end is missing, "it is cut short"; empty: the file is whole.
  std::string trouble;

  const DataNode& Root() const { return nodes[root]; }
  // The value of a key in a dict; null where it is none, or has no such key.
  const DataNode* Find(const DataNode& dict, std::string_view key) const;
  std::string_view TextOf(const DataNode* node) const;               // empty where it is no text
  std::optional<int64_t> IntegerOf(const DataNode* node) const;      // also one that is written as a text
  std::optional<bool> BoolOf(const DataNode* node) const;            //
  const std::vector<uint32_t>& ItemsOf(const DataNode* node) const;  // of a list or tuple; else none
};

bool IsContainer(const DataNode& node);

// The text is an integer, and nothing else.
std::optional<int64_t> ParseInteger(std::string_view text);

}  // namespace aimaster::c4d
