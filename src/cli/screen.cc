#include "cli/screen.h"

#include <poll.h>

#include <chrono>

#include "cli/text.h"

namespace aimaster::cli {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::chrono::milliseconds kLastWordsMax{1000};

}  // namespace

Screen::Screen(int out, int err) : out_(out), err_(err) { LookAgain(); }

void Screen::LookAgain() {
  err_terminal_ = LookAt(err_.descriptor());
  out_terminal_ = LookAt(out_.descriptor());
}

void Screen::Show(OutputQueue& queue, std::string_view bytes) {
  if (bytes.empty()) return;
  HideLive();
  queue.Append(bytes);
  const bool on_our_terminal = &queue == &err_ || out_terminal_.is_terminal;
  if (on_our_terminal) at_line_start_ = bytes.back() == '\n';
}

void Screen::Line(std::string_view text) {
  HideLive();
  if (!at_line_start_) err_.Append("\n");
  err_.Append(text);
  err_.Append("\n");
  at_line_start_ = true;
}

// A rank that is in the middle of a line, drawing a bar say, has the last line for itself.
bool Screen::CanShowLive() const { return err_terminal_.redraws && at_line_start_ && out_.empty(); }

void Screen::Live(std::string text) {
  if (text == live_ && (live_shown_ || text.empty())) return;
  live_ = std::move(text);
  if (live_.empty()) return HideLive();
  if (!CanShowLive() || err_.full()) return;
  const size_t width = err_terminal_.width > 1 ? static_cast<size_t>(err_terminal_.width - 1) : 79;
  err_.Append(kEraseLine);
  err_.Append(err_terminal_.Paint(Colour::kDim, CutToWidth(live_, width)));
  live_shown_ = true;
}

void Screen::HideLive() {
  if (!live_shown_) return;
  err_.Append(kEraseLine);
  live_shown_ = false;
}

void Screen::Flush() {
  // What takes the live line away has to arrive before what takes its place, also when that comes by the other stream.
  err_.Flush();
  if (err_.empty() || !err_terminal_.is_terminal) out_.Flush();
}

void Screen::FlushBeforeLeaving() {
  const auto deadline = std::chrono::steady_clock::now() + kLastWordsMax;
  Flush();
  while (!empty() && std::chrono::steady_clock::now() < deadline) {
    pollfd reader{.fd = waiting_for(), .events = POLLOUT, .revents = 0};
    poll(&reader, 1, 10);
    Flush();
  }
}

int Screen::waiting_for() const {
  if (!err_.empty()) return err_.descriptor();
  return out_.empty() ? -1 : out_.descriptor();
}

}  // namespace aimaster::cli
