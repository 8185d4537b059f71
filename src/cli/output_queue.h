// OutputQueue: bytes on their way to standard output or standard error, written only as fast as the reader takes them.
//
// A blocking write was rejected: with a pager that nobody scrolls, or a terminal stopped with Ctrl-S, it would hold up
// the whole follower, and the Ctrl-C that should stop the job would wait behind a line of text. Making the descriptor
// non-blocking was rejected too: it is shared with whoever started us.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace aimaster::cli {

inline constexpr size_t kOutputQueueFull = 64 << 10;  // more is not read from logs while so much waits

class OutputQueue {
 public:
  explicit OutputQueue(int descriptor);

  // Dropped when the reader has gone.
  void Append(std::string_view bytes);
  // Writes what the other side takes now.
  void Flush();

  int descriptor() const { return descriptor_; }
  bool empty() const { return position_ == bytes_.size(); }
  bool full() const { return bytes_.size() - position_ >= kOutputQueueFull; }
  bool reader_gone() const { return reader_gone_; }
  // Why nothing more could be written, as errno has it; 0: all could, or the reader has gone, as `head` does.
  int error() const { return error_; }
  // The last byte that was appended ended a line: something of its own can follow.
  bool at_line_start() const { return at_line_start_; }

 private:
  int descriptor_;
  size_t chunk_;  // what a write takes without waiting once poll has said that there is room
  std::string bytes_;
  size_t position_ = 0;
  bool reader_gone_ = false;
  int error_ = 0;
  bool at_line_start_ = true;
};

}  // namespace aimaster::cli
