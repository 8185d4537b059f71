// PeerText: what the other end said, inside a sentence of ours: an error body, the reason of a goodbye. Printable as
// core/quote.h has it, but long enough for a whole sentence, since this one was written to be read.
#pragma once

#include <string>
#include <string_view>

namespace aimaster {

// One line of valid UTF-8, of about kPeerTextMax bytes at most.
std::string PeerText(std::string_view text);

}  // namespace aimaster
