// Text on its way to a person's terminal: how wide it is, where it can be cut, and what must not get through.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace aimaster::cli {

// One line that is safe to print, however long: control characters and line breaks become blanks, bytes that are not
// UTF-8 become "?". What a rank printed may hold sequences that would repaint, or even type into, the reader's
// terminal.
std::string OneLine(std::string_view text);

// 'text', as one line. For paths and words of people in our sentences, which have to be whole to be of use.
inline std::string InQuotes(std::string_view text) { return "'" + OneLine(text) + "'"; }

// Columns that valid UTF-8 takes on a terminal; wide East Asian characters and emoji take two.
size_t DisplayWidth(std::string_view text);

// The text in at most `width` columns, ended by "…" where something was cut off.
std::string CutToWidth(std::string_view text, size_t width);

// Paragraphs (separated by an empty line) in lines of at most `width` columns. Lines that start with a blank are kept
// as they are: they are tables or examples.
std::vector<std::string> Wrap(std::string_view text, size_t width);

}  // namespace aimaster::cli
