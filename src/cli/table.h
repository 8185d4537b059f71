// A table of text for a terminal: columns as wide as their content. Where that is too wide for the terminal, columns
// give way, each as it may: cut, below the row, left out. Pure: rows in, lines out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"

namespace aimaster::cli {

struct Column {
  std::string_view title;
  enum class Align { kLeft, kRight } align = Align::kLeft;
  bool may_be_cut = false;
  // What becomes of it where cutting is not enough. Left out are those with the greatest number first, one by one.
  bool may_go_below = false;  // on a line of its own under its row
  int left_out = 0;           // 0: never
};

struct Cell {
  std::string text;  // made safe here
  Colour colour = Colour::kNone;

  Cell(std::string text_in, Colour colour_in = Colour::kNone) : text(std::move(text_in)), colour(colour_in) {}
  Cell(std::string_view text_in) : text(text_in) {}
  Cell(const char* text_in) : text(text_in) {}
};

// Lines with a line break each, the titles first. Every row has a cell for each column.
std::string FormatTable(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                        const Terminal& terminal);

}  // namespace aimaster::cli
