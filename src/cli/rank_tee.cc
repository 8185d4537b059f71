#include "cli/rank_tee.h"

#include <sys/resource.h>

#include <algorithm>

namespace aimaster::cli {
namespace {

constexpr size_t kReadMax = 64 << 10;  // of one source in one turn, so that none waits for a talkative one
constexpr int kTurnsPerPump = 16;      // until the follower looks at its signals again

// Two files per rank; a thousand descriptors, which is the usual limit, are not enough for a large job.
void AllowManyFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

RankTee::RankTee(std::filesystem::path job_directory, TeeSelection selection)
    : job_directory_(std::move(job_directory)), selection_(std::move(selection)) {
  if (!selection_.none && !selection_.rank) AllowManyFiles();
}

void RankTee::Discover() {
  if (selection_.none) return;
  for (const AttemptLogs& attempt : FindAttempts(job_directory_, selection_.instance, known_attempts_)) {
    known_attempts_.insert(attempt.directory);
    if (attempt.round < selection_.first_round || attempt.round > selection_.last_round) continue;
    for (const RankLog& log : attempt.ranks) {
      if (selection_.rank && log.rank != *selection_.rank) continue;
      for (const Stream stream : {Stream::kOut, Stream::kErr}) {
        Source& source = sources_[{log.rank, stream}];
        source.stream = stream;
        source.files.push_back(stream == Stream::kOut ? log.out : log.err);
        if (selection_.with_prefixes && !source.prefixer)
          source.prefixer.emplace("[rank" + std::to_string(log.rank) + "] ");
      }
    }
  }
}

void RankTee::Add(const std::filesystem::path& file) { sources_[{0, Stream::kOut}].files.push_back(file); }

void RankTee::SkipToLastLines(uint64_t lines) {
  for (auto& [rank, source] : sources_) {
    if (source.files.empty()) continue;
    source.current = source.files.size() - 1;
    source.open = LogFile::Open(source.files[source.current]);
    if (source.open) source.open->SeekToLastLines(lines);
  }
}

bool RankTee::Pump(Screen& screen) {
  bool given = false;
  for (int turn = 0; turn < kTurnsPerPump; ++turn) {
    // Not after reading: a reader who takes all at that moment would make a full screen, that nothing could be given
    // to, look like one with nothing left to give.
    screen.Flush();
    bool more = false;
    for (auto& [rank, source] : sources_) more |= PumpSource(source, screen);
    given |= more;
    if (!more) break;
  }
  return given;
}

bool RankTee::PumpSource(Source& source, Screen& screen) {
  const bool to_out = source.stream == Stream::kOut || selection_.all_to_stdout;
  if (to_out ? screen.out_full() : screen.err_full()) return false;
  while (source.current < source.files.size()) {
    // Asked before reading: when there is a later attempt now, what is read to its end now is all there will ever be.
    const bool is_last = source.current + 1 == source.files.size();
    if (!source.open) source.open = LogFile::Open(source.files[source.current]);
    buffer_.clear();
    if (source.open && source.open->Read(buffer_, kReadMax) > 0) {
      if (!source.prefixer) {
        Give(source, buffer_, screen);
      } else {
        lines_.clear();
        source.prefixer->Feed(buffer_, lines_);
        Give(source, lines_, screen);
      }
      return true;
    }
    if (is_last) return false;
    Advance(source, screen);
  }
  return false;
}

void RankTee::Give(const Source& source, std::string_view bytes, Screen& screen) {
  if (source.stream == Stream::kOut || selection_.all_to_stdout) {
    screen.Out(bytes);
  } else {
    screen.Err(bytes);
  }
}

void RankTee::Advance(Source& source, Screen& screen) {
  if (source.prefixer) {
    lines_.clear();
    source.prefixer->Finish(lines_);
    Give(source, lines_, screen);
  }
  if (source.open) source.skipped_bytes += source.open->skipped_bytes();
  source.open.reset();
  ++source.current;
}

void RankTee::Finish(Screen& screen) {
  for (auto& [rank, source] : sources_) {
    if (source.current < source.files.size()) Advance(source, screen);
  }
}

uint64_t RankTee::skipped_bytes() const {
  uint64_t sum = 0;
  for (const auto& [rank, source] : sources_) {
    sum += source.skipped_bytes + (source.open ? source.open->skipped_bytes() : 0);
  }
  return sum;
}

}  // namespace aimaster::cli
