// Screen: what a follower shows. Output of ranks goes to the streams that they wrote to, lines of ours to standard
// error, and on a terminal one live line stands below all of it, taken away while something else is printed.
#pragma once

#include <string>
#include <string_view>

#include "cli/output_queue.h"
#include "cli/terminal.h"

namespace aimaster::cli {

class Screen {
 public:
  explicit Screen(int out = 1, int err = 2);

  // A rank's own bytes.
  void Out(std::string_view bytes) { Show(out_, bytes); }
  void Err(std::string_view bytes) { Show(err_, bytes); }
  // A line of ours, on a line of its own.
  void Line(std::string_view text);
  // Replaces the live line; empty takes it away. Where standard error is no terminal there is none.
  void Live(std::string text);

  // Writes what the readers take now, without waiting.
  void Flush();
  // The last words: waits for slow readers, but not for ever.
  void FlushBeforeLeaving();
  bool out_full() const { return out_.full(); }
  bool err_full() const { return err_.full(); }
  int out_error() const { return out_.error(); }
  bool empty() const { return out_.empty() && err_.empty(); }
  // The descriptor that bytes wait for, or −1.
  int waiting_for() const;

  const Terminal& terminal() const { return err_terminal_; }
  void LookAgain();  // the terminal's size has changed

 private:
  void Show(OutputQueue& queue, std::string_view bytes);
  void HideLive();
  bool CanShowLive() const;

  OutputQueue out_, err_;
  Terminal err_terminal_, out_terminal_;
  std::string live_;  // what should stand there
  bool live_shown_ = false;
  bool at_line_start_ = true;  // of what is shown besides the live line
};

}  // namespace aimaster::cli
