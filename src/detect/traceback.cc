#include "detect/traceback.h"

namespace aimaster {
namespace {

bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWord(char c) { return IsWordStart(c) || (c >= '0' && c <= '9'); }

// "name" or "package.Name", alone or followed by a colon and a message.
bool LooksLikeException(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  if (name.empty() || name.size() > 200) return false;
  if (name.size() + 1 < line.size() && line[name.size() + 1] != ' ') return false;
  bool at_start = true;
  for (char c : name) {
    if (c == '.' && !at_start) {
      at_start = true;
    } else if (at_start ? IsWordStart(c) : IsWord(c)) {
      at_start = false;
    } else {
      return false;
    }
  }
  return !at_start;
}

}  // namespace

LineKind Traceback::Classify(std::string_view line) {
  if (line.find("Traceback (most recent call last):") != std::string_view::npos) {
    open_ = true;
    in_frame_ = false;
    chained_ = link_seen_;
    link_seen_ = false;
    return LineKind::kHeader;
  }
  const bool indented = line.starts_with(' ') || line.starts_with('\t');
  if (indented) {
    const size_t text = line.find_first_not_of(" \t");
    const bool file = text != std::string_view::npos && line.substr(text).starts_with("File \"");
    if (open_ || file || in_frame_) {
      in_frame_ = true;
      return LineKind::kFrame;
    }
    return LineKind::kOther;
  }
  in_frame_ = false;
  if (line.starts_with("During handling of the above exception") ||
      line.starts_with("The above exception was the direct cause")) {
    link_seen_ = true;
    return LineKind::kChainLink;
  }
  if (open_ && LooksLikeException(line)) {
    open_ = false;
    return chained_ ? LineKind::kChainedException : LineKind::kException;
  }
  return LineKind::kOther;
}

}  // namespace aimaster
