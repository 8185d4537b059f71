#include "stacks/document.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/quote.h"

namespace aimaster::stacks {
namespace {

using nlohmann::json;

constexpr uint32_t kFormatVersion = 1;
constexpr uint32_t kChild = 1;
constexpr uint32_t kMain = 1, kWaiting = 2, kGil = 4;

// Written by hand: a capture of a large job has hundreds of thousands of rows, of five numbers each.
class Writer {
 public:
  Writer& Raw(std::string_view text) {
    out_ += text;
    return *this;
  }
  Writer& Number(int64_t number) {
    out_ += std::to_string(number);
    return *this;
  }
  // Whatever came in was made printable, but a capture of another program may not have been.
  Writer& String(std::string_view text) {
    out_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') out_ += '\\';
      out_ += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    out_ += '"';
    return *this;
  }
  template <typename Rows, typename Write>
  Writer& Array(const Rows& rows, Write write) {
    out_ += '[';
    bool is_first = true;
    for (const auto& row : rows) {
      if (!std::exchange(is_first, false)) out_ += ',';
      write(row);
    }
    out_ += ']';
    return *this;
  }
  Writer& Numbers(std::initializer_list<int64_t> numbers) {
    return Array(numbers, [this](int64_t number) { Number(number); });
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Takes the document in as it is read. Making a tree of it first was tried: that of a large job took several seconds,
// in which a master hears nobody.
class Reader {
 public:
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  // What was read, if it is whole and points to nothing that is not there.
  std::optional<Capture> Take() {
    const bool is_whole = depth_ == 0 && seen_ == kAllSeen && !capture_.texts.empty() && capture_.texts[0].empty();
    if (!is_whole || !PointsWithin()) return std::nullopt;
    return std::move(capture_);
  }
  uint64_t version() const { return version_; }

  // As nlohmann's SAX interface calls them; false ends the reading.
  bool null() { return table_ == Table::kOther; }
  bool boolean(bool) { return table_ == Table::kOther; }
  bool number_float(number_float_t, const string_t&) { return table_ == Table::kOther; }
  bool binary(binary_t&) { return table_ == Table::kOther; }
  bool number_unsigned(number_unsigned_t number) {
    return number <= INT64_MAX && number_integer(static_cast<number_integer_t>(number));
  }
  bool number_integer(number_integer_t number) {
    if (table_ == Table::kOther) return true;
    if (depth_ == kInRow) {
      row_.push_back(number);
      return row_.size() <= kFramesPerStackMax;
    }
    return depth_ == kInDocument && Scalar(number);
  }
  bool string(string_t& text) {
    if (table_ == Table::kOther) return true;
    if (table_ == Table::kReason && depth_ == kInDocument) {
      capture_.reason = CleanText(text);
      return true;
    }
    if (table_ != Table::kTexts || depth_ != kInTable || capture_.texts.size() == kTextsMax) return false;
    capture_.texts.push_back(CleanText(text));
    return true;
  }
  bool key(string_t& name) {
    if (depth_ != kInDocument) return true;
    table_ = Which(name);
    if (table_ != Table::kOther) seen_ |= 1u << static_cast<unsigned>(table_);
    return true;
  }
  bool start_object(size_t) { return ++depth_ == kInDocument || table_ == Table::kOther; }
  bool end_object() {
    --depth_;
    return true;
  }
  bool start_array(size_t) {
    ++depth_;
    row_.clear();
    const bool is_table = table_ >= Table::kTexts && table_ != Table::kOther;
    const int deepest = !is_table ? kInDocument : table_ == Table::kTexts ? kInTable : kInRow;
    return table_ == Table::kOther ? depth_ > kInDocument : depth_ <= deepest;
  }
  bool end_array() {
    const bool is_row = depth_-- == kInRow && table_ != Table::kOther;
    return !is_row || Row();
  }
  bool parse_error(size_t, const std::string&, const json::exception&) { return false; }

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
  std::vector<int64_t> row_;
};

}  // namespace

std::string FormatDocument(const Capture& capture) {
  Writer out;
  out.Raw("{\"version\":").Number(kFormatVersion).Raw(",\"number\":").Number(capture.number);
  out.Raw(",\"time_ns\":").Number(capture.time_ns).Raw(",\"reason\":").String(capture.reason);
  out.Raw(",\n\"texts\":").Array(capture.texts, [&](const std::string& text) { out.String(text); });
  out.Raw(",\n\"frames\":").Array(capture.frames, [&](const FrameRow& row) {
    out.Numbers({row.function, row.file, row.line, static_cast<int64_t>(row.language)});
  });
  out.Raw(",\n\"stacks\":").Array(capture.stacks, [&](const std::vector<uint32_t>& stack) {
    out.Array(stack, [&](uint32_t frame) { out.Number(frame); });
  });
  out.Raw(",\n\"processes\":").Array(capture.processes, [&](const ProcessRow& row) {
    out.Numbers({row.node, row.instance, row.rank == kNone ? -1 : int64_t{row.rank}, row.pid, row.is_child ? kChild : 0,
                 row.command, row.tool, row.trouble});
  });
  out.Raw(",\n\"threads\":").Array(capture.threads, [&](const ThreadRow& row) {
    const uint32_t flags = (row.is_main ? kMain : 0) | (row.is_waiting ? kWaiting : 0) | (row.holds_gil ? kGil : 0);
    out.Numbers({row.process, row.stack, static_cast<int64_t>(row.id & INT64_MAX), row.name, flags});
  });
  out.Raw(",\n\"threads_cut\":").Number(static_cast<int64_t>(capture.threads_cut));
  out.Raw(",\"processes_cut\":").Number(static_cast<int64_t>(capture.processes_cut)).Raw("}\n");
  return out.Take();
}

Result<Capture> ParseDocument(std::string_view bytes) {
  if (bytes.size() > kDocumentMaxBytes) return Fail(ErrorKind::kUsage, "is too large for a document of call stacks");
  Reader reader;
  const bool is_json = json::sax_parse(bytes, &reader);
  if (reader.version() > kFormatVersion && reader.version() != UINT64_MAX) {
    return Fail(ErrorKind::kVersion, "was written by a newer version of this program");
  }
  if (std::optional<Capture> capture = is_json ? reader.Take() : std::nullopt) return std::move(*capture);
  return Fail(ErrorKind::kUsage, "is no document of call stacks, or a damaged one");
}

}  // namespace aimaster::stacks
