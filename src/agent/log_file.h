// LogFile: one output file of a rank, watched by its size alone. It grows, it was cut short by its program, it takes
// too much room: fstat says all of this, and there is no watch that could run out.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace aimaster::agent {

class LogFile {
 public:
  LogFile(std::string path, uint64_t max_bytes);  // 0: no bound
  ~LogFile();
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&&) = delete;

  // Bytes that came since the last look. A file that shrank was truncated by its program and counts from 0 again; one
  // that was truncated and is as long again as it was has changed its time, and counts as one byte.
  uint64_t Look();
  uint64_t size() const { return size_; }  // as of the last look
  // What stands there; fewer bytes than asked for at its end, none where it can't be read.
  size_t Read(uint64_t offset, std::span<char> bytes);
  bool has_output() const { return has_output_; }
  // When the last bytes were written, by the file system's clock. An agent that has just come learns it from here too.
  int64_t last_output_wall_ns() const { return last_output_wall_ns_; }

  // Gives old bytes back when the file holds more than its bound: a hole grows from its start, at most kPunchStepBytes
  // at a time, so that nothing else waits long. True when there is more to give back.
  // Where the file system knows no holes the file is cut to nothing; its writer appends, so it goes on from there.
  // `at_most`: a bound of the moment besides its own; 0: none.
  bool Bound(uint64_t at_most = 0);

 private:
  bool Open();
  void LetGo();
  bool GiveBack(uint64_t max_bytes);

  std::string path_;
  uint64_t max_bytes_;
  int fd_ = -1;
  bool writable_ = false;
  bool can_bound_ = true;  // as long as no try has failed
  uint64_t size_ = 0;
  uint64_t blocks_bytes_ = 0;
  uint64_t hole_end_ = 0;
  bool has_output_ = false;
  int64_t last_output_wall_ns_ = 0;
  int64_t changed_ns_ = 0;  // by the file system's clock, by its program or by us
};

}  // namespace aimaster::agent
