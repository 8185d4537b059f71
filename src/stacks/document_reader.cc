// Reading the document; writing it is in document.cc, which is all that an agent needs.
#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/src.hpp>
#include <optional>
#include <utility>

#include "core/quote.h"
#include "stacks/document.h"
#include "stacks/document_format.h"

namespace aimaster::stacks {
namespace {

using ErrorCode = boost::json::error_code;

// Takes the document in as it is read. Making a tree of it first was tried: that of a large job took several seconds,
// in which a master hears nobody. Of the parsers at hand Boost.JSON's is the fastest that calls back.
class Reader {
 public:
  // What Boost.JSON asks of a handler: no bounds of its own, what there may be is counted here.
  static constexpr std::size_t max_object_size = SIZE_MAX, max_array_size = SIZE_MAX, max_key_size = SIZE_MAX,
                               max_string_size = SIZE_MAX;

  // What was read, if it is whole and points to nothing that is not there.
  std::optional<Capture> Take() {
    const bool is_whole = depth_ == 0 && seen_ == kAllSeen && !capture_.texts.empty() && capture_.texts[0].empty();
    if (!is_whole || !PointsWithin()) return std::nullopt;
    return std::move(capture_);
  }
  uint64_t version() const { return version_; }

  bool on_document_begin(ErrorCode&) { return true; }
  bool on_document_end(ErrorCode&) { return true; }
  bool on_object_begin(ErrorCode& ec) { return Held(++depth_ == kInDocument || table_ == Table::kOther, ec); }
  bool on_object_end(size_t, ErrorCode&) {
    --depth_;
    return true;
  }
  bool on_array_begin(ErrorCode& ec) { return Held(BeginArray(), ec); }
  bool on_array_end(size_t, ErrorCode& ec) {
    const bool is_row = depth_-- == kInRow && table_ != Table::kOther;
    return Held(!is_row || Row(), ec);
  }
  bool on_key_part(boost::json::string_view part, size_t, ErrorCode&) { return Keep(part); }
  bool on_key(boost::json::string_view part, size_t, ErrorCode&) {
    Keep(part);
    Key(std::exchange(text_, {}));
    return true;
  }
  bool on_string_part(boost::json::string_view part, size_t, ErrorCode&) { return Keep(part); }
  bool on_string(boost::json::string_view part, size_t, ErrorCode& ec) {
    Keep(part);
    return Held(Text(std::exchange(text_, {})), ec);
  }
  bool on_number_part(boost::json::string_view, ErrorCode&) { return true; }
  bool on_int64(int64_t number, boost::json::string_view, ErrorCode& ec) { return Held(Number(number), ec); }
  bool on_uint64(uint64_t number, boost::json::string_view, ErrorCode& ec) {
    return Held(table_ == Table::kOther || (number <= INT64_MAX && Number(static_cast<int64_t>(number))), ec);
  }
  bool on_double(double, boost::json::string_view, ErrorCode& ec) { return Held(table_ == Table::kOther, ec); }
  bool on_bool(bool, ErrorCode& ec) { return Held(table_ == Table::kOther, ec); }
  bool on_null(ErrorCode& ec) { return Held(table_ == Table::kOther, ec); }
  bool on_comment_part(boost::json::string_view, ErrorCode&) { return true; }
  bool on_comment(boost::json::string_view, ErrorCode&) { return true; }

 private:
  enum class Table {
    kVersion,
    kNumber,
    kTime,
    kReason,
    kThreadsCut,
    kProcessesCut,
    kTexts,
    kFrames,
    kStacks,
    kProcesses,
    kThreads,
    kOther
  };
  static constexpr unsigned kAllSeen = (1u << static_cast<unsigned>(Table::kOther)) - 1;
  static constexpr int kInDocument = 1, kInTable = 2, kInRow = 3;

  static Table Which(std::string_view name) {
    static constexpr std::array<std::string_view, 11> kNames = {"version",     "number",        "time_ns", "reason",
                                                                "threads_cut", "processes_cut", "texts",   "frames",
                                                                "stacks",      "processes",     "threads"};
    return static_cast<Table>(std::ranges::find(kNames, name) - kNames.begin());
  }

  // Where something does not hold, the reading ends.
  static bool Held(bool holds, ErrorCode& ec) {
    if (!holds) ec = boost::json::error::syntax;
    return holds;
  }

  bool Keep(boost::json::string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }

  void Key(const std::string& name) {
    if (depth_ != kInDocument) return;
    table_ = Which(name);
    if (table_ != Table::kOther) seen_ |= 1u << static_cast<unsigned>(table_);
  }

  bool BeginArray() {
    ++depth_;
    row_.clear();
    const bool is_table = table_ >= Table::kTexts && table_ != Table::kOther;
    const int deepest = !is_table ? kInDocument : table_ == Table::kTexts ? kInTable : kInRow;
    return table_ == Table::kOther ? depth_ > kInDocument : depth_ <= deepest;
  }

  bool Number(int64_t number) {
    if (table_ == Table::kOther) return true;
    if (depth_ == kInRow) {
      row_.push_back(number);
      return row_.size() <= kFramesPerStackMax;
    }
    return depth_ == kInDocument && Scalar(number);
  }

  bool Text(const std::string& text) {
    if (table_ == Table::kOther) return true;
    if (table_ == Table::kReason && depth_ == kInDocument) {
      capture_.reason = CleanText(text);
      return true;
    }
    if (table_ != Table::kTexts || depth_ != kInTable || capture_.texts.size() == kTextsMax) return false;
    capture_.texts.push_back(CleanText(text));
    return true;
  }

  static std::string CleanText(const std::string& text) {
    return text.size() <= kTroubleMaxBytes && IsPrintable(text) ? text : CleanName(text);
  }

  bool Scalar(int64_t number) {
    switch (table_) {
      case Table::kVersion:
        version_ = number < 0 ? UINT64_MAX : static_cast<uint64_t>(number);
        return version_ <= kFormatVersion;
      case Table::kNumber:
        capture_.number = static_cast<uint32_t>(number);
        return number >= 0 && number <= UINT32_MAX;
      case Table::kTime:
        capture_.time_ns = number;
        return true;
      case Table::kThreadsCut:
        capture_.threads_cut = static_cast<uint64_t>(number);
        return number >= 0;
      case Table::kProcessesCut:
        capture_.processes_cut = static_cast<uint64_t>(number);
        return number >= 0;
      case Table::kReason:
      case Table::kTexts:
      case Table::kFrames:
      case Table::kStacks:
      case Table::kProcesses:
      case Table::kThreads:
      case Table::kOther:
        break;
    }
    return false;
  }

  // All entries from `first` to `last` are numbers of 32 bits.
  bool AreSmall(size_t first, size_t last) const {
    return row_.size() > last &&
           std::all_of(row_.begin() + static_cast<ptrdiff_t>(first), row_.begin() + static_cast<ptrdiff_t>(last) + 1,
                       [](int64_t number) { return number >= 0 && number <= UINT32_MAX; });
  }
  uint32_t At(size_t i) const { return static_cast<uint32_t>(row_[i]); }

  bool Row() {
    switch (table_) {
      case Table::kFrames:
        if (!AreSmall(0, 3) || row_[3] > 2 || capture_.frames.size() == kFramesMax) return false;
        capture_.frames.push_back(
            {.function = At(0), .file = At(1), .line = At(2), .language = static_cast<Language>(row_[3])});
        return true;
      case Table::kStacks:
        if ((!row_.empty() && !AreSmall(0, row_.size() - 1)) || capture_.stacks.size() == kStacksMax) return false;
        capture_.stacks.emplace_back(row_.begin(), row_.end());
        return true;
      case Table::kProcesses: {
        const bool has_rank = row_.size() > 2 && row_[2] != -1;
        if (!AreSmall(0, 1) || !AreSmall(3, 7) || (has_rank && !AreSmall(2, 2))) return false;
        if (capture_.processes.size() == kProcessesMax) return false;
        capture_.processes.push_back({.node = At(0),
                                      .instance = At(1),
                                      .rank = has_rank ? At(2) : kNone,
                                      .pid = At(3),
                                      .is_child = (At(4) & kChild) != 0,
                                      .command = At(5),
                                      .tool = At(6),
                                      .trouble = At(7)});
        return true;
      }
      case Table::kThreads:
        if (!AreSmall(0, 1) || !AreSmall(3, 4) || row_[2] < 0 || capture_.threads.size() == kThreadsMax) return false;
        capture_.threads.push_back({.process = At(0),
                                    .stack = At(1),
                                    .id = static_cast<uint64_t>(row_[2]),
                                    .name = At(3),
                                    .is_main = (At(4) & kMain) != 0,
                                    .is_waiting = (At(4) & kWaiting) != 0,
                                    .holds_gil = (At(4) & kGil) != 0});
        return true;
      case Table::kVersion:
      case Table::kNumber:
      case Table::kTime:
      case Table::kReason:
      case Table::kThreadsCut:
      case Table::kProcessesCut:
      case Table::kTexts:
      case Table::kOther:
        break;
    }
    return false;
  }

  bool PointsWithin() const {
    const size_t texts = capture_.texts.size();
    return std::ranges::all_of(capture_.frames,
                               [&](const FrameRow& row) { return row.function < texts && row.file < texts; }) &&
           std::ranges::all_of(capture_.stacks,
                               [&](const std::vector<uint32_t>& stack) {
                                 return std::ranges::all_of(
                                     stack, [&](uint32_t frame) { return frame < capture_.frames.size(); });
                               }) &&
           std::ranges::all_of(capture_.processes,
                               [&](const ProcessRow& row) {
                                 return std::max({row.node, row.instance, row.command, row.tool, row.trouble}) < texts;
                               }) &&
           std::ranges::all_of(capture_.threads, [&](const ThreadRow& row) {
             return row.process < capture_.processes.size() && row.stack < capture_.stacks.size() && row.name < texts;
           });
  }

  Capture capture_{.texts = {}};
  uint64_t version_ = 0;
  unsigned seen_ = 0;
  Table table_ = Table::kOther;
  int depth_ = 0;
  std::string text_;
  std::vector<int64_t> row_;
};

}  // namespace

Result<Capture> ParseDocument(std::string_view bytes) {
  if (bytes.size() > kDocumentMaxBytes) return Fail(ErrorKind::kUsage, "is too large for a document of call stacks");
  boost::json::basic_parser<Reader> parser(boost::json::parse_options{});
  ErrorCode failed;
  const bool is_json = parser.write_some(false, bytes.data(), bytes.size(), failed) == bytes.size() && !failed;
  Reader& reader = parser.handler();
  if (reader.version() > kFormatVersion && reader.version() != UINT64_MAX) {
    return Fail(ErrorKind::kVersion, "was written by a newer version of this program");
  }
  if (std::optional<Capture> capture = is_json ? reader.Take() : std::nullopt) return std::move(*capture);
  return Fail(ErrorKind::kUsage, "is no document of call stacks, or a damaged one");
}

}  // namespace aimaster::stacks
