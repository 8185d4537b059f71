#include "c4d/pickle_reader.h"

#include <bit>
#include <cstring>
#include <utility>

#include "c4d/limits.h"

namespace aimaster::c4d {
namespace {

// The machine's words, by their byte. Those that import or call are in Forbidden().
enum Word : uint8_t {
  kWordMark = '(',
  kWordStop = '.',
  kWordPop = '0',
  kWordPopMark = '1',
  kWordDuplicate = '2',
  kWordNone = 'N',
  kWordTrue = 0x88,
  kWordFalse = 0x89,
  kWordInteger4 = 'J',
  kWordInteger1 = 'K',
  kWordInteger2 = 'M',
  kWordLong1 = 0x8a,
  kWordLong4 = 0x8b,
  kWordReal = 'G',
  kWordShortString = 'U',
  kWordString = 'T',
  kWordUnicode = 'X',
  kWordShortUnicode = 0x8c,
  kWordUnicode8 = 0x8d,
  kWordBytes = 'B',
  kWordShortBytes = 'C',
  kWordBytes8 = 0x8e,
  kWordByteArray8 = 0x96,
  kWordEmptyList = ']',
  kWordList = 'l',
  kWordAppend = 'a',
  kWordAppends = 'e',
  kWordEmptyTuple = ')',
  kWordTuple = 't',
  kWordTuple1 = 0x85,
  kWordTuple2 = 0x86,
  kWordTuple3 = 0x87,
  kWordEmptySet = 0x8f,
  kWordAddItems = 0x90,
  kWordFrozenSet = 0x91,
  kWordEmptyDict = '}',
  kWordDict = 'd',
  kWordSetItem = 's',
  kWordSetItems = 'u',
  kWordPut1 = 'q',
  kWordPut4 = 'r',
  kWordGet1 = 'h',
  kWordGet4 = 'j',
  kWordMemoize = 0x94,
  kWordProtocol = 0x80,
  kWordFrame = 0x95,
};
constexpr uint8_t kProtocolMin = 2;
constexpr uint8_t kProtocolMax = 5;
// Python fills a container so many items at a time.
constexpr size_t kBatch = 1000;

// What a word would do that is no data; empty: nothing of the kind.
std::string_view Forbidden(uint8_t word) {
  switch (word) {
    case 'c':
      return "import a name (GLOBAL)";
    case 0x93:
      return "import a name (STACK_GLOBAL)";
    case 'R':
      return "call a function (REDUCE)";
    case 'b':
      return "fill an object (BUILD)";
    case 'i':
      return "make an object (INST)";
    case 'o':
      return "make an object (OBJ)";
    case 0x81:
      return "make an object (NEWOBJ)";
    case 0x92:
      return "make an object (NEWOBJ_EX)";
    case 0x82:
      return "import a name (EXT1)";
    case 0x83:
      return "import a name (EXT2)";
    case 0x84:
      return "import a name (EXT4)";
    case 'P':
      return "load an object (PERSID)";
    case 'Q':
      return "load an object (BINPERSID)";
    case 0x97:
      return "load a buffer (NEXT_BUFFER)";
    case 0x98:
      return "load a buffer (READONLY_BUFFER)";
    default:
      return {};
  }
}

class Machine {
 public:
  explicit Machine(std::string_view bytes) : bytes_(bytes) {}

  Result<DataTree> Run() {
    Step step = Step::kGoOn;
    while (step == Step::kGoOn) step = Next();
    if (step == Step::kRefuse) return Fail(ErrorKind::kEnvironment, std::move(refusal_));
    if (step == Step::kStop && stack_.size() == 1 && marks_.empty()) {
      tree_.root = stack_.front();
      return std::move(tree_);
    }
    tree_.trouble = step == Step::kCut ? "it is cut short" : "it is damaged at byte " + std::to_string(word_at_);
    Salvage();
    return std::move(tree_);
  }

 private:
  enum class Step { kGoOn, kStop, kCut, kDamaged, kRefuse };

  Step Refuse(std::string why) {
    refusal_ = std::move(why);
    return Step::kRefuse;
  }

  bool Has(uint64_t size) const { return size <= bytes_.size() - at_; }

  // Little-endian; the caller has looked that it is there.
  uint64_t TakeNumber(size_t size) {
    uint64_t number = 0;
    for (size_t i = 0; i < size; ++i) number |= uint64_t{static_cast<uint8_t>(bytes_[at_ + i])} << (8 * i);
    at_ += size;
    return number;
  }

  Step Push(DataNode node) {
    if (tree_.nodes.size() == kNodesMax) {
      return Refuse("holds more than " + std::to_string(kNodesMax) + " values");
    }
    tree_.nodes.push_back(std::move(node));
    stack_.push_back(static_cast<uint32_t>(tree_.nodes.size() - 1));
    return Step::kGoOn;
  }

  Step PushInteger(size_t size, bool is_signed) {
    if (!Has(size)) return Step::kCut;
    const uint64_t number = TakeNumber(size);
    const int64_t integer = is_signed ? static_cast<int32_t>(static_cast<uint32_t>(number)) : int64_t(number);
    return Push({.kind = DataKind::kInteger, .integer = integer});
  }

  // Two's complement, little-endian, of any length.
  Step PushLong(size_t size_bytes) {
    if (!Has(size_bytes)) return Step::kCut;
    const uint64_t size = TakeNumber(size_bytes);
    if (!Has(size)) return Step::kCut;
    const std::string_view digits = bytes_.substr(at_, size);
    at_ += size;
    const bool is_negative = !digits.empty() && (static_cast<uint8_t>(digits.back()) & 0x80) != 0;
    if (size <= 8) {
      uint64_t number = is_negative ? UINT64_MAX : 0;
      for (size_t i = digits.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(digits[i]);
      return Push({.kind = DataKind::kInteger, .integer = static_cast<int64_t>(number)});
    }
    double real = is_negative ? -1 : 0;
    for (size_t i = digits.size(); i-- > 0;) real = real * 256 + static_cast<uint8_t>(digits[i]);
    return Push({.kind = DataKind::kReal, .real = real});
  }

  Step PushReal() {
    if (!Has(8)) return Step::kCut;
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; ++i) bits = bits << 8 | static_cast<uint8_t>(bytes_[at_ + i]);
    at_ += 8;
    return Push({.kind = DataKind::kReal, .real = std::bit_cast<double>(bits)});
  }

  Step PushText(size_t size_bytes, DataKind kind) {
    if (!Has(size_bytes)) return Step::kCut;
    const uint64_t size = TakeNumber(size_bytes);
    if (!Has(size)) return Step::kCut;
    const std::string_view text = bytes_.substr(at_, size);
    at_ += size;
    return Push({.kind = kind, .text = text});
  }

  // The last mark's items are those from here on. Nothing below a mark can be taken away.
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }
  bool HasItems(size_t count) const { return stack_.size() - Floor() >= count; }

  // Moves the stack's items from `begin` on into a container below them or a new one.
  Step Fill(uint32_t container, size_t begin) {
    items_ += stack_.size() - begin;
    if (items_ > kItemsMax) return Refuse("holds more than " + std::to_string(kItemsMax) + " items");
    std::vector<uint32_t>& items = tree_.nodes[container].items;
    items.insert(items.end(), stack_.begin() + static_cast<ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin);
    return Step::kGoOn;
  }

  Step Make(DataKind kind, size_t begin) {
    if (kind == DataKind::kDict && (stack_.size() - begin) % 2 != 0) return Step::kDamaged;
    if (tree_.nodes.size() == kNodesMax) return Push({});
    const auto container = static_cast<uint32_t>(tree_.nodes.size());
    tree_.nodes.push_back({.kind = kind});
    const Step step = Fill(container, begin);
    stack_.push_back(container);
    return step;
  }

  Step MakeOfMark(DataKind kind) {
    if (marks_.empty()) return Step::kDamaged;
    const size_t begin = marks_.back();
    marks_.pop_back();
    return Make(kind, begin);
  }

  // Adds the items from `begin` on to the container below them.
  Step AddTo(DataKind kind, size_t begin) {
    if (begin <= Floor() || tree_.nodes[stack_[begin - 1]].kind != kind) return Step::kDamaged;
    if (kind == DataKind::kDict && (stack_.size() - begin) % 2 != 0) return Step::kDamaged;
    return Fill(stack_[begin - 1], begin);
  }

  Step AddMarkTo(DataKind kind) {
    if (marks_.empty()) return Step::kDamaged;
    const size_t begin = marks_.back();
    marks_.pop_back();
    return AddTo(kind, begin);
  }

  Step Remember(size_t index) {
    if (!HasItems(1)) return Step::kDamaged;
    if (index >= kMemoMax) return Refuse("remembers more than " + std::to_string(kMemoMax) + " values");
    if (index >= memo_.size()) memo_.resize(index + 1, kNothing);
    memo_[index] = stack_.back();
    return Step::kGoOn;
  }

  Step Recall(size_t index) {
    if (index >= memo_.size() || memo_[index] == kNothing) return Step::kDamaged;
    if (stack_.size() == kItemsMax) return Refuse("holds more than " + std::to_string(kItemsMax) + " items");
    stack_.push_back(memo_[index]);
    return Step::kGoOn;
  }

  Step Mark() {
    if (marks_.size() == kDepthMax) return Refuse("is nested deeper than " + std::to_string(kDepthMax));
    marks_.push_back(stack_.size());
    return Step::kGoOn;
  }

  Step Pop() {
    if (!HasItems(1)) return Step::kDamaged;
    stack_.pop_back();
    return Step::kGoOn;
  }

  Step PopMark() {
    if (marks_.empty()) return Step::kDamaged;
    stack_.resize(marks_.back());
    marks_.pop_back();
    return Step::kGoOn;
  }

  Step Next() {
    word_at_ = at_;
    if (!Has(1)) return Step::kCut;
    const auto word = static_cast<uint8_t>(bytes_[at_++]);
    switch (word) {
      case kWordProtocol:
        if (!Has(1)) return Step::kCut;
        if (const uint64_t protocol = TakeNumber(1); protocol < kProtocolMin || protocol > kProtocolMax) {
          return Refuse("is a pickle of protocol " + std::to_string(protocol) + "; 2 to 5 can be read");
        }
        return Step::kGoOn;
      case kWordFrame:
        if (!Has(8)) return Step::kCut;
        at_ += 8;
        return Step::kGoOn;
      case kWordStop:
        return Step::kStop;
      case kWordMark:
        return Mark();
      case kWordPop:
        return Pop();
      case kWordPopMark:
        return PopMark();
      case kWordDuplicate:
        if (!HasItems(1)) return Step::kDamaged;
        if (stack_.size() == kItemsMax) return Refuse("holds more than " + std::to_string(kItemsMax) + " items");
        stack_.push_back(stack_.back());
        return Step::kGoOn;
      case kWordPut1:
        return Has(1) ? Remember(TakeNumber(1)) : Step::kCut;
      case kWordPut4:
        return Has(4) ? Remember(TakeNumber(4)) : Step::kCut;
      case kWordMemoize:
        return Remember(memo_.size());
      case kWordGet1:
        return Has(1) ? Recall(TakeNumber(1)) : Step::kCut;
      case kWordGet4:
        return Has(4) ? Recall(TakeNumber(4)) : Step::kCut;
      default:
        return Scalar(word);
    }
  }

  Step Scalar(uint8_t word) {
    switch (word) {
      case kWordNone:
        return Push({});
      case kWordTrue:
        return Push({.kind = DataKind::kBool, .integer = 1});
      case kWordFalse:
        return Push({.kind = DataKind::kBool, .integer = 0});
      case kWordInteger1:
        return PushInteger(1, false);
      case kWordInteger2:
        return PushInteger(2, false);
      case kWordInteger4:
        return PushInteger(4, true);
      case kWordLong1:
        return PushLong(1);
      case kWordLong4:
        return PushLong(4);
      case kWordReal:
        return PushReal();
      case kWordShortString:
      case kWordShortUnicode:
        return PushText(1, DataKind::kText);
      case kWordString:
      case kWordUnicode:
        return PushText(4, DataKind::kText);
      case kWordUnicode8:
        return PushText(8, DataKind::kText);
      case kWordShortBytes:
        return PushText(1, DataKind::kBytes);
      case kWordBytes:
        return PushText(4, DataKind::kBytes);
      case kWordBytes8:
      case kWordByteArray8:
        return PushText(8, DataKind::kBytes);
      default:
        return Container(word);
    }
  }

  Step Container(uint8_t word) {
    switch (word) {
      case kWordEmptyList:
      case kWordEmptySet:
        return Push({.kind = DataKind::kList});
      case kWordEmptyTuple:
        return Push({.kind = DataKind::kTuple});
      case kWordEmptyDict:
        return Push({.kind = DataKind::kDict});
      case kWordList:
        return MakeOfMark(DataKind::kList);
      case kWordTuple:
      case kWordFrozenSet:
        return MakeOfMark(DataKind::kTuple);
      case kWordDict:
        return MakeOfMark(DataKind::kDict);
      case kWordTuple1:
      case kWordTuple2:
      case kWordTuple3: {
        const size_t size = word - kWordTuple1 + 1;
        return HasItems(size) ? Make(DataKind::kTuple, stack_.size() - size) : Step::kDamaged;
      }
      case kWordAppend:
        return HasItems(2) ? AddTo(DataKind::kList, stack_.size() - 1) : Step::kDamaged;
      case kWordAppends:
      case kWordAddItems:
        return AddMarkTo(DataKind::kList);
      case kWordSetItem:
        return HasItems(3) ? AddTo(DataKind::kDict, stack_.size() - 2) : Step::kDamaged;
      case kWordSetItems:
        return AddMarkTo(DataKind::kDict);
      default:
        if (const std::string_view deed = Forbidden(word); !deed.empty()) {
          return Refuse("is refused: it would " + std::string(deed) + " at byte " + std::to_string(word_at_));
        }
        return Step::kDamaged;
    }
  }

  // What lies open on the stack goes into the container below its mark, the innermost first, as if it had been
  // finished; see MarkUnfinished for what is no longer taken for whole.
  void Salvage() {
    while (!stack_.empty()) {
      const size_t begin = marks_.empty() ? 1 : marks_.back();
      const size_t floor = marks_.size() < 2 ? 0 : marks_[marks_.size() - 2];
      const bool has_below = begin > floor;
      const uint32_t below = has_below ? stack_[begin - 1] : 0;
      MarkUnfinished(begin);
      if (has_below && tree_.nodes[below].kind == DataKind::kDict) {
        stack_.resize(begin + WholePairs(begin));
        Fill(below, begin);
        tree_.nodes[below].is_whole = false;
      } else if (has_below && tree_.nodes[below].kind == DataKind::kList) {
        Fill(below, begin);
        tree_.nodes[below].is_whole = false;
      } else {  // a tuple that was not made yet
        stack_.resize(begin);
      }
      if (marks_.empty()) break;
      marks_.pop_back();
    }
    if (stack_.empty()) {
      tree_.nodes.clear();
      return;
    }
    tree_.root = stack_.front();
    if (IsContainer(tree_.nodes[tree_.root])) tree_.nodes[tree_.root].is_whole = false;
  }

  // Which of the open containers will not be filled any more can't be seen before the next word. One that is empty, or
  // full to a batch, or the last, may have been about to be.
  void MarkUnfinished(size_t begin) {
    for (size_t i = begin; i < stack_.size(); ++i) {
      DataNode& node = tree_.nodes[stack_[i]];
      if (node.kind != DataKind::kList && node.kind != DataKind::kDict) continue;
      const size_t size = node.kind == DataKind::kDict ? node.items.size() / 2 : node.items.size();
      if (i + 1 == stack_.size() || size % kBatch == 0) node.is_whole = false;
    }
  }

  // How many items from `begin` on are keys with their values. Where a key should be and a container is, the value
  // before it was still being filled.
  size_t WholePairs(size_t begin) {
    size_t count = 0;
    for (; begin + count + 2 <= stack_.size(); count += 2) {
      if (IsContainer(tree_.nodes[stack_[begin + count]])) break;
    }
    const bool value_goes_on =
        count > 0 && begin + count < stack_.size() && IsContainer(tree_.nodes[stack_[begin + count]]);
    if (value_goes_on) tree_.nodes[stack_[begin + count - 1]].is_whole = false;
    return count;
  }

  static constexpr uint32_t kNothing = UINT32_MAX;

  std::string_view bytes_;
  size_t at_ = 0;
  size_t word_at_ = 0;
  size_t items_ = 0;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;  // of the stack's items: where those behind a mark begin
  std::vector<uint32_t> memo_;
  std::string refusal_;
  DataTree tree_;
};

}  // namespace

bool LooksLikePickle(std::string_view bytes) {
  return !bytes.empty() && static_cast<uint8_t>(bytes.front()) == kWordProtocol;
}

Result<DataTree> ReadPickle(std::string_view bytes) { return Machine(bytes).Run(); }

}  // namespace aimaster::c4d
