#include "wire/peer_text.h"

#include "core/quote.h"
#include "wire/limits.h"

namespace aimaster {
namespace {

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

std::string PeerText(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  std::string out;
  while (!text.empty()) {
    if (out.size() >= kPeerTextMax) return out + "…";
    size_t length = 1;
    while (length < 4 && length < text.size() && Continues(text[length])) ++length;
    out += Printable(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace aimaster
