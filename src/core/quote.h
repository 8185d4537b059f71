// Quoted: a foreign text inside a sentence of ours. Whatever bytes came in, what goes out is one line of valid UTF-8,
// short enough to read, so that an error can go to a terminal, into JSON and onto a page as it is. Leaving that to each
// border was rejected: the border that forgets it is the one where a bad byte stops the report of the error that it
// caused.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace aimaster {

inline constexpr size_t kQuotedMaxBytes = 80;  // of the text between the quotes; what is cut off ends in "…"

// 'text', with control characters and bytes that are not UTF-8 written as \xNN.
std::string Quoted(std::string_view text);
// The same without the quotes, for a text that is marked in another way.
std::string Printable(std::string_view text);
// Valid UTF-8 without control characters.
bool IsPrintable(std::string_view text);

}  // namespace aimaster
