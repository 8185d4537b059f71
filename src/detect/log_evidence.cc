#include "detect/log_evidence.h"

#include <algorithm>
#include <utility>

namespace aimaster {
namespace {

constexpr size_t kVoicesMax = 4096;  // per file; more labels than that are no labels

}  // namespace

void LogEvidence::Begin(const std::string& path) {
  files_.push_back({.path = path, .owner = RankFileOf(path), .voices = {}, .by_name = {}});
  AddVoice({});
  pending_.clear();
  table_rank_.reset();
  long_line_ = nullptr;
  offset_ = 0;
}

void LogEvidence::Feed(std::string_view bytes) {
  File& file = files_.back();
  if (file.owner) {
    file.voices.front().scanner.Feed(bytes, offset_);
    offset_ += bytes.size();
    return;
  }
  // Who speaks is known from a line's beginning, so lines are made whole first.
  while (!bytes.empty() && (long_line_ || !pending_.empty())) {
    const size_t end = std::min(bytes.find_first_of("\n\r"), bytes.size());
    const size_t piece = std::min(end + 1, bytes.size());
    if (long_line_) {
      long_line_->scanner.Feed(bytes.substr(0, piece), offset_);
      if (end < bytes.size()) long_line_ = nullptr;
      offset_ += piece;
      bytes.remove_prefix(piece);
      continue;
    }
    pending_ += bytes.substr(0, piece);
    bytes.remove_prefix(piece);
    offset_ += piece;
    const bool whole = pending_.back() == '\n' || pending_.back() == '\r';
    if (!whole && pending_.size() < kLineMaxBytes) return;
    Voice& voice = VoiceOf(pending_);
    voice.scanner.Feed(pending_, offset_ - pending_.size());
    if (!whole) long_line_ = &voice;
    pending_.clear();
  }
  const size_t last = bytes.find_last_of("\n\r");
  const size_t whole = last == std::string_view::npos ? 0 : last + 1;
  FeedLines(bytes.substr(0, whole), offset_);
  pending_ = bytes.substr(whole);
  offset_ += bytes.size();
}

// Neighbouring lines of one voice go to its scanner in one piece: most files have one voice alone.
void LogEvidence::FeedLines(std::string_view bytes, uint64_t offset) {
  Voice* speaking = nullptr;
  size_t begin = 0, at = 0;
  const auto flush = [&] {
    if (speaking && at > begin) speaking->scanner.Feed(bytes.substr(begin, at - begin), offset + begin);
    begin = at;
  };
  while (at < bytes.size()) {
    const size_t end = std::min(bytes.find_first_of("\n\r", at), bytes.size() - 1);
    Voice& voice = VoiceOf(bytes.substr(at, end - at));
    if (&voice != speaking) {
      flush();
      speaking = &voice;
    }
    at = end + 1;
  }
  flush();
}

void LogEvidence::End() {
  if (!pending_.empty()) {
    VoiceOf(pending_).scanner.Feed(pending_, offset_ - pending_.size());
    pending_.clear();
  }
  for (Voice& voice : files_.back().voices) voice.scanner.Finish();
}

LogEvidence::Voice& LogEvidence::VoiceOf(std::string_view line) {
  File& file = files_.back();
  Speaker speaker = SpeakerOf(line);
  if (speaker.kind == Speaker::Kind::kNobody) {
    table_rank_ = RankOfTable(line, table_rank_);
    if (!table_rank_) return file.voices.front();
    speaker = RankSpeaker(*table_rank_);
  } else {
    table_rank_.reset();
  }
  const auto known = file.by_name.find(speaker.name);
  if (known != file.by_name.end()) return *known->second;
  if (file.voices.size() > kVoicesMax) return file.voices.front();
  return AddVoice(std::move(speaker));
}

LogEvidence::Voice& LogEvidence::AddVoice(Speaker speaker) {
  File& file = files_.back();
  const std::string name = speaker.name;
  Voice& voice = file.voices.emplace_back(std::move(speaker), matcher_, file.path);
  voice.scanner.ShareWatch(file.watch);
  if (!name.empty()) file.by_name.emplace(name, &voice);
  return voice;
}

}  // namespace aimaster
