#include "c4d/pickle_reader.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "c4d/limits.h"

namespace aimaster::c4d {
namespace {

using namespace std::string_literals;

// What json.dumps would print of it; "…" behind what is not whole.
std::string Print(const DataTree& tree, uint32_t index, int depth = 0) {
  const DataNode& node = tree.nodes[index];
  if (depth > 8) return "deep";
  std::string text;
  switch (node.kind) {
    case DataKind::kNone:
      return "null";
    case DataKind::kBool:
      return node.integer != 0 ? "true" : "false";
    case DataKind::kInteger:
      return std::to_string(node.integer);
    case DataKind::kReal:
      return std::to_string(node.real);
    case DataKind::kText:
      return "\"" + std::string(node.text) + "\"";
    case DataKind::kBytes:
      return "b\"" + std::string(node.text) + "\"";
    case DataKind::kList:
    case DataKind::kTuple:
    case DataKind::kDict:
      break;
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const bool is_value = node.kind == DataKind::kDict && i % 2 != 0;
    text += (i == 0 ? "" : is_value ? ": " : ", ") + Print(tree, node.items[i], depth + 1);
  }
  const std::string_view brackets = node.kind == DataKind::kDict ? "{}" : node.kind == DataKind::kList ? "[]" : "()";
  return brackets[0] + text + brackets[1] + (node.is_whole ? "" : "…");
}

std::string Pickled(std::string_view bytes) {
  const Result<DataTree> tree = ReadPickle(bytes);
  if (!tree) return "refused: " + tree.error().message;
  const std::string told = tree->nodes.empty() ? "nothing" : Print(*tree, tree->root);
  return tree->trouble.empty() ? told : told + " " + tree->trouble;
}

TEST(PickleReader, ReadsAllThatIsData) {
  EXPECT_EQ(Pickled("\x80\x02N."s), "null");
  EXPECT_EQ(Pickled("\x80\x02\x88."s), "true");
  EXPECT_EQ(Pickled("\x80\x02K\xff."s), "255");
  EXPECT_EQ(Pickled("\x80\x02M\x01\x02."s), "513");
  EXPECT_EQ(Pickled("\x80\x02J\xff\xff\xff\xff."s), "-1");
  EXPECT_EQ(Pickled("\x80\x02\x8a\x00."s), "0");
  EXPECT_EQ(Pickled("\x80\x02\x8a\x01\xff."s), "-1");
  EXPECT_EQ(Pickled("\x80\x02\x8a\x08\x15\xcd\x5b\x07\x00\x00\x00\x80."s), "-9223372036731319019");
  EXPECT_EQ(Pickled("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00."s), "9223372036854775808.000000");
  EXPECT_EQ(Pickled("\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00."s), "1.500000");
  EXPECT_EQ(Pickled("\x80\x02X\x02\x00\x00\x00hi."s), "\"hi\"");
  EXPECT_EQ(Pickled("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x02hi\x94."s), "\"hi\"");
  EXPECT_EQ(Pickled("\x80\x03\x43\x02hi."s), "b\"hi\"");
  EXPECT_EQ(Pickled("\x80\x02](K\x01K\x02]e."s), "[1, 2, []]");
  EXPECT_EQ(Pickled("\x80\x02]K\x01\x61."s), "[1]");
  EXPECT_EQ(Pickled("\x80\x02K\x01K\x02\x86."s), "(1, 2)");
  EXPECT_EQ(Pickled("\x80\x02(K\x01K\x02K\x03K\x04t."s), "(1, 2, 3, 4)");
  EXPECT_EQ(Pickled("\x80\x02}(K\x01\x88K\x02\x89u."s), "{1: true, 2: false}");
  EXPECT_EQ(Pickled("\x80\x02}K\x01\x88s."s), "{1: true}");
  EXPECT_EQ(Pickled("\x80\x02X\x01\x00\x00\x00xq\x05h\x05h\x05\x87."s), "(\"x\", \"x\", \"x\")");
  EXPECT_EQ(Pickled("\x80\x02X\x01\x00\x00\x00xq\x05h\x05\x86."s), "(\"x\", \"x\")");
}

TEST(PickleReader, WhateverWouldRunIsRefusedAndSaidByName) {
  // What `os.system("…")` looks like, in the old way and the new.
  EXPECT_EQ(Pickled("\x80\x02\x63os\nsystem\nX\x02\x00\x00\x00ls\x85R."s),
            "refused: is refused: it would import a name (GLOBAL) at byte 2");
  EXPECT_EQ(Pickled("\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02ls\x85R."s),
            "refused: is refused: it would import a name (STACK_GLOBAL) at byte 14");
  for (const char word : "Rbio\x81\x92\x82\x83\x84PQ\x97\x98"s) {
    EXPECT_NE(Pickled("\x80\x02]]"s + word + "xxxxxx.").find("refused: is refused: it would "), std::string::npos)
        << static_cast<int>(word);
  }
}

TEST(PickleReader, OtherProtocolsAreNamed) {
  EXPECT_EQ(Pickled("\x80\x01N."s), "refused: is a pickle of protocol 1; 2 to 5 can be read");
  EXPECT_EQ(Pickled("\x80\x06N."s), "refused: is a pickle of protocol 6; 2 to 5 can be read");
}

TEST(PickleReader, OfACutOneEverythingThatWasReadIsKeptAndWhatMayBeUnfinishedIsMarked) {
  const std::string whole = "\x80\x02}(K\x01](K\x02K\x03\x65K\x04}(K\x05](K\x06K\x07\x65K\x08N\x75u."s;
  EXPECT_EQ(Pickled(whole), "{1: [2, 3], 4: {5: [6, 7], 8: null}}");
  const auto cut = [&](size_t from_end) { return Pickled(std::string_view(whole).substr(0, whole.size() - from_end)); };
  EXPECT_EQ(cut(1), "{1: [2, 3], 4: {5: [6, 7], 8: null}}… it is cut short");
  EXPECT_EQ(cut(2), "{1: [2, 3], 4: {5: [6, 7], 8: null}…}… it is cut short");
  EXPECT_EQ(cut(3), "{1: [2, 3], 4: {5: [6, 7], 8: null}…}… it is cut short");
  EXPECT_EQ(cut(4), "{1: [2, 3], 4: {5: [6, 7]}…}… it is cut short");
  EXPECT_EQ(cut(6), "{1: [2, 3], 4: {5: [6, 7]…}…}… it is cut short");
  EXPECT_EQ(cut(9), "{1: [2, 3], 4: {5: [6]…}…}… it is cut short");
  EXPECT_EQ(Pickled(whole.substr(0, 2)), "nothing it is cut short");
}

TEST(PickleReader, ADictThatIsFilledByOneIsNotTakenForWholeBeforeItIs) {
  // {"a": {1: {2: 3}}, …: the inner ones are filled by a single pair each.
  const std::string whole = "\x80\x02}(X\x01\x00\x00\x00\x61}K\x01}K\x02K\x03ssX\x01\x00\x00\x00\x62Nu."s;
  EXPECT_EQ(Pickled(whole), "{\"a\": {1: {2: 3}}, \"b\": null}");
  for (size_t size = 3; size < whole.size(); ++size) {
    const Result<DataTree> tree = ReadPickle(std::string_view(whole).substr(0, size));
    ASSERT_TRUE(tree.has_value());
    const DataNode* outer = tree->Find(tree->Root(), "a");
    if (outer != nullptr && outer->is_whole) {
      EXPECT_EQ(outer->items.size(), 2) << "cut at " << size;
      EXPECT_EQ(tree->nodes[outer->items[1]].items.size(), 2) << "cut at " << size;
    }
  }
}

TEST(PickleReader, NonsenseIsDamageWithItsPlace) {
  EXPECT_EQ(Pickled("\x80\x02]K\x01\xff."s), "[1]… it is damaged at byte 5");
  EXPECT_EQ(Pickled("\x80\x02h\x07."s), "nothing it is damaged at byte 2");
  EXPECT_EQ(Pickled("\x80\x02\x65."s), "nothing it is damaged at byte 2");
  EXPECT_EQ(Pickled("\x80\x02K\x01s."s), "1 it is damaged at byte 4");
  EXPECT_EQ(Pickled("\x80\x02."s), "nothing it is damaged at byte 2");
}

TEST(PickleReader, AListThatHoldsItselfIsAListThatHoldsItself) {
  const Result<DataTree> tree = ReadPickle("\x80\x02]q\x00h\x00\x61."s);
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->Root().items, std::vector<uint32_t>{tree->root});
}

TEST(PickleReader, HostileOnesMeetALimit) {
  EXPECT_NE(Pickled("\x80\x02"s + std::string(100'000, '(')).find("refused: is nested deeper"), std::string::npos);
  // A list of the list before it, twice, and so on: a billion of them, in one kilobyte.
  std::string laughs = "\x80\x02]q\x00"s;
  for (char i = 0; i < 30; ++i) laughs += "](h"s + i + "h"s + i + "eq" + static_cast<char>(i + 1);
  const Result<DataTree> tree = ReadPickle(laughs + ".");
  ASSERT_TRUE(tree.has_value());
  EXPECT_LT(tree->nodes.size(), 100);
  EXPECT_NE(Pickled("\x80\x02Nr\xff\xff\xff\xff."s).find("refused: remembers more"), std::string::npos);
  EXPECT_EQ(Pickled("\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s), "nothing it is cut short");
  EXPECT_NE(Pickled("\x80\x02"s + std::string(kNodesMax + 1, 'N') + ".").find("refused: holds more"),
            std::string::npos);
}

TEST(PickleReader, AnyBytesAreReadOrRefused) {
  EXPECT_TRUE(rc::check([](const std::vector<uint8_t>& bytes) {
    const std::string text = "\x80\x02" + std::string(bytes.begin(), bytes.end());
    RC_ASSERT(!Pickled(text).empty());
  }));
}

}  // namespace
}  // namespace aimaster::c4d
