#include "stacks/frame.h"

#include "core/character_border.h"
#include "core/quote.h"

namespace aimaster::stacks {

std::string CleanName(std::string_view text) {
  if (text.size() > kNameMaxBytes) {  // the end of a path says more than its beginning
    text.remove_prefix(text.size() - kNameMaxBytes);
    while (!text.empty() && IsContinuation(text.front())) text.remove_prefix(1);
  }
  return IsPrintable(text) ? std::string(text) : Printable(text);
}

void BoundFrames(std::vector<Frame>& frames) {
  if (frames.size() <= kFramesPerStackMax) return;
  constexpr size_t kEnd = (kFramesPerStackMax - 1) / 2;
  std::vector<Frame> kept(frames.begin(), frames.begin() + kEnd);
  kept.push_back({.function = "(frames left out)", .file = {}, .line = 0, .language = frames[kEnd].language});
  kept.insert(kept.end(), frames.end() - kEnd, frames.end());
  frames = std::move(kept);
}

}  // namespace aimaster::stacks
