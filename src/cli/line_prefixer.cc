#include "cli/line_prefixer.h"

#include <algorithm>

namespace aimaster::cli {

void LinePrefixer::Feed(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const size_t plain = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (plain > 0) {
      if (returned_) line_.clear();
      returned_ = false;
      line_ += bytes.substr(0, plain);
      bytes.remove_prefix(plain);
      if (line_.size() >= kPrefixedLineMax) Emit(out);
      continue;
    }
    if (bytes.front() == '\n') {
      Emit(out);
    } else {
      returned_ = true;
    }
    bytes.remove_prefix(1);
  }
}

void LinePrefixer::Finish(std::string& out) {
  if (!line_.empty()) Emit(out);
}

void LinePrefixer::Emit(std::string& out) {
  out += prefix_;
  out += line_;
  out += '\n';
  line_.clear();
  returned_ = false;
}

}  // namespace aimaster::cli
