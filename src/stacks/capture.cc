#include "stacks/capture.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "stacks/document.h"

namespace aimaster::stacks {
namespace {

constexpr size_t Mixed(size_t seed, size_t value) {
  return (seed ^ value) * 0x9E3779B97F4A7C15u + (seed << 6) + (seed >> 2);
}

struct FrameHash {
  size_t operator()(const FrameRow& row) const {
    return Mixed(Mixed(Mixed(row.function, row.file), row.line), static_cast<size_t>(row.language));
  }
};
struct StackHash {
  size_t operator()(const std::vector<uint32_t>& stack) const {
    size_t hash = stack.size();
    for (const uint32_t frame : stack) hash = Mixed(hash, frame);
    return hash;
  }
};
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

}  // namespace

// Which row a thing has already.
struct CaptureBuilder::Index {
  std::unordered_map<std::string, TextIndex, TextHash, std::equal_to<>> texts;
  std::unordered_map<FrameRow, uint32_t, FrameHash> frames;
  std::unordered_map<std::vector<uint32_t>, uint32_t, StackHash> stacks;
};

CaptureBuilder::CaptureBuilder() : index_(std::make_unique<Index>()) {}
CaptureBuilder::~CaptureBuilder() = default;
CaptureBuilder::CaptureBuilder(CaptureBuilder&&) noexcept = default;
CaptureBuilder& CaptureBuilder::operator=(CaptureBuilder&&) noexcept = default;

TextIndex CaptureBuilder::TextOf(std::string_view text) {
  if (text.empty()) return 0;
  if (const auto found = index_->texts.find(text); found != index_->texts.end()) return found->second;
  const auto row = static_cast<TextIndex>(capture_.texts.size());
  capture_.texts.emplace_back(text);
  index_->texts.emplace(text, row);
  return row;
}

uint32_t CaptureBuilder::FrameOf(const FrameRow& row) {
  const auto [entry, is_new] = index_->frames.try_emplace(row, static_cast<uint32_t>(capture_.frames.size()));
  if (is_new) capture_.frames.push_back(row);
  return entry->second;
}

uint32_t CaptureBuilder::StackOf(std::vector<uint32_t> stack) {
  const auto [entry, is_new] = index_->stacks.try_emplace(stack, static_cast<uint32_t>(capture_.stacks.size()));
  if (is_new) capture_.stacks.push_back(std::move(stack));
  return entry->second;
}

bool IsMainThread(const Thread& thread, uint32_t pid) {
  return (pid != 0 && thread.id == pid) || thread.name == "MainThread";
}

void CaptureBuilder::Add(const Origin& origin, std::span<const Thread> threads) {
  size_t frames = 0;
  for (const Thread& thread : threads) frames += thread.frames.size();
  if (!HasRoom(2 * frames + threads.size() + 5, frames, threads.size(), 1, threads.size())) {
    ++capture_.processes_cut;
    capture_.threads_cut += threads.size();
    return;
  }
  const auto process = static_cast<uint32_t>(capture_.processes.size());
  capture_.processes.push_back({.node = TextOf(origin.node),
                                .instance = TextOf(origin.instance),
                                .rank = origin.rank,
                                .pid = origin.pid,
                                .is_child = origin.is_child,
                                .command = TextOf(origin.command),
                                .tool = TextOf(origin.tool),
                                .trouble = TextOf(origin.trouble)});
  for (const Thread& thread : threads) {
    std::vector<uint32_t> stack;
    stack.reserve(thread.frames.size());
    for (const Frame& frame : thread.frames) {
      stack.push_back(FrameOf({.function = TextOf(frame.function),
                               .file = TextOf(frame.file),
                               .line = frame.line,
                               .language = frame.language}));
    }
    capture_.threads.push_back({.process = process,
                                .stack = StackOf(std::move(stack)),
                                .id = thread.id,
                                .name = TextOf(thread.name),
                                .is_main = IsMainThread(thread, origin.pid),
                                .is_waiting = thread.is_waiting,
                                .holds_gil = thread.holds_gil});
  }
}

void CaptureBuilder::Add(const Capture& capture) {
  capture_.processes_cut += capture.processes_cut;
  capture_.threads_cut += capture.threads_cut;
  if (!HasRoom(capture.texts.size(), capture.frames.size(), capture.stacks.size(), capture.processes.size(),
               capture.threads.size())) {
    capture_.processes_cut += capture.processes.size();
    capture_.threads_cut += capture.threads.size();
    return;
  }
  const auto first_process = static_cast<uint32_t>(capture_.processes.size());
  std::vector<uint32_t> texts, frames, stacks;  // theirs → ours
  texts.reserve(capture.texts.size());
  for (const std::string& text : capture.texts) texts.push_back(TextOf(text));
  frames.reserve(capture.frames.size());
  for (FrameRow row : capture.frames) {
    row.function = texts[row.function];
    row.file = texts[row.file];
    frames.push_back(FrameOf(row));
  }
  stacks.reserve(capture.stacks.size());
  for (std::vector<uint32_t> stack : capture.stacks) {
    for (uint32_t& frame : stack) frame = frames[frame];
    stacks.push_back(StackOf(std::move(stack)));
  }
  for (ProcessRow row : capture.processes) {
    for (TextIndex* text : {&row.node, &row.instance, &row.command, &row.tool, &row.trouble}) *text = texts[*text];
    capture_.processes.push_back(row);
  }
  for (ThreadRow row : capture.threads) {
    row.process += first_process;
    row.stack = stacks[row.stack];
    row.name = texts[row.name];
    capture_.threads.push_back(row);
  }
}

bool CaptureBuilder::HasRoom(size_t texts, size_t frames, size_t stacks, size_t processes, size_t threads) const {
  return capture_.texts.size() + texts <= kTextsMax && capture_.frames.size() + frames <= kFramesMax &&
         capture_.stacks.size() + stacks <= kStacksMax && capture_.processes.size() + processes <= kProcessesMax &&
         capture_.threads.size() + threads <= kThreadsMax;
}

Capture CaptureBuilder::Take() {
  index_ = std::make_unique<Index>();
  return std::exchange(capture_, {});
}

namespace {

// The capture of what `keeps` says, and with nothing in its tables that nobody needs.
template <typename KeepsProcess, typename KeepsThread>
Capture Only(const Capture& from, KeepsProcess keeps_process, KeepsThread keeps_thread) {
  Capture kept = from;
  kept.threads.clear();
  kept.processes.clear();
  std::vector<uint32_t> processes(from.processes.size(), kNone);
  for (size_t i = 0; i < from.processes.size(); ++i) {
    if (!keeps_process(i)) continue;
    processes[i] = static_cast<uint32_t>(kept.processes.size());
    kept.processes.push_back(from.processes[i]);
  }
  for (ThreadRow row : from.threads) {
    if (processes[row.process] == kNone || !keeps_thread(row)) continue;
    row.process = processes[row.process];
    kept.threads.push_back(row);
  }
  kept.processes_cut += from.processes.size() - kept.processes.size();
  kept.threads_cut += from.threads.size() - kept.threads.size();
  std::vector<bool> is_needed(from.stacks.size());
  for (const ThreadRow& row : kept.threads) is_needed[row.stack] = true;
  for (size_t i = 0; i < from.stacks.size(); ++i) {
    if (!is_needed[i]) kept.stacks[i].clear();
  }
  // What nobody needs is emptied, and what is empty is the same, so that adding it up leaves one of it.
  std::vector<bool> is_frame_needed(from.frames.size());
  for (const auto& stack : kept.stacks) {
    for (const uint32_t frame : stack) is_frame_needed[frame] = true;
  }
  for (size_t i = 0; i < from.frames.size(); ++i) {
    if (!is_frame_needed[i]) kept.frames[i] = {};
  }
  std::vector<bool> is_text_needed(from.texts.size());
  const auto need = [&](TextIndex text) { is_text_needed[text] = true; };
  for (const FrameRow& row : kept.frames) need(row.function), need(row.file);
  for (const ProcessRow& row : kept.processes) {
    for (const TextIndex text : {row.node, row.instance, row.command, row.tool, row.trouble}) need(text);
  }
  for (const ThreadRow& row : kept.threads) need(row.name);
  for (size_t i = 0; i < from.texts.size(); ++i) {
    if (!is_text_needed[i]) kept.texts[i].clear();
  }
  CaptureBuilder builder;
  builder.Add(kept);
  Capture packed = builder.Take();
  packed.number = from.number, packed.time_ns = from.time_ns, packed.reason = from.reason;
  return packed;
}

}  // namespace

Capture Bounded(Capture capture, size_t document_max) {
  const auto fits = [document_max](const Capture& one) { return FormatDocument(one).size() <= document_max; };
  const auto any = [](const auto&) { return true; };
  if (fits(capture)) return capture;
  capture = Only(capture, any, [](const ThreadRow& row) { return row.is_main || !row.is_waiting; });
  if (fits(capture)) return capture;
  capture = Only(capture, any, [](const ThreadRow& row) { return row.is_main; });
  if (fits(capture)) return capture;
  capture = Only(capture, [&](size_t i) { return !capture.processes[i].is_child; }, any);
  while (!fits(capture) && !capture.processes.empty()) {
    const size_t half = capture.processes.size() / 2;
    capture = Only(capture, [half](size_t i) { return i < half; }, any);
  }
  return capture;
}

}  // namespace aimaster::stacks
