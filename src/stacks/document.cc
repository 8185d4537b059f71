#include "stacks/document.h"

#include <initializer_list>
#include <utility>

#include "stacks/document_format.h"

namespace aimaster::stacks {
namespace {

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

}  // namespace aimaster::stacks
