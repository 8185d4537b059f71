#include "cli/table.h"

#include <algorithm>
#include <utility>

#include "cli/text.h"
#include "core/check.h"

namespace aimaster::cli {
namespace {

constexpr size_t kGap = 2;            // blanks between columns
constexpr size_t kCutColumnMin = 12;  // what is left of a column that gives way
constexpr int kBelowIndent = 4;

std::vector<size_t> NaturalWidths(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    size_t width = DisplayWidth(columns[i].title);
    for (const std::vector<Cell>& row : rows) width = std::max(width, DisplayWidth(row[i].text));
    widths.push_back(width);
  }
  return widths;
}

size_t TotalWidth(const std::vector<size_t>& widths, const std::vector<bool>& shown) {
  size_t total = 0, count = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (!shown[i]) continue;
    total += widths[i];
    ++count;
  }
  return total + (count > 0 ? kGap * (count - 1) : 0);
}

// How a table fits into a terminal.
struct Layout {
  std::vector<size_t> widths;
  std::vector<bool> shown;  // in the row
  std::vector<bool> below;  // under it
};

// Takes character by character from the widest of those that may give way; false when that is not enough.
bool CutTo(size_t width, const std::vector<Column>& columns, Layout& layout) {
  std::vector<size_t> widths = layout.widths;
  for (size_t total = TotalWidth(widths, layout.shown); total > width; --total) {
    size_t widest = columns.size();
    for (size_t i = 0; i < columns.size(); ++i) {
      const bool gives = layout.shown[i] && columns[i].may_be_cut && widths[i] > kCutColumnMin;
      if (gives && (widest == columns.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == columns.size()) return false;
    --widths[widest];
  }
  layout.widths = std::move(widths);
  return true;
}

Layout FitTo(size_t width, const std::vector<Column>& columns, std::vector<size_t> widths) {
  Layout layout{std::move(widths), std::vector<bool>(columns.size(), true), std::vector<bool>(columns.size(), false)};
  if (width == 0 || CutTo(width, columns, layout)) return layout;
  for (size_t i = 0; i < columns.size(); ++i) {
    layout.below[i] = columns[i].may_go_below;
    layout.shown[i] = !columns[i].may_go_below;
  }
  while (!CutTo(width, columns, layout)) {
    size_t out = columns.size();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (!layout.shown[i] || columns[i].left_out == 0) continue;
      if (out == columns.size() || columns[i].left_out > columns[out].left_out) out = i;
    }
    if (out == columns.size()) break;  // wider than the terminal, then
    layout.shown[out] = false;
  }
  return layout;
}

std::string Line(const std::vector<Column>& columns, const Layout& layout, const std::vector<Cell>& cells,
                 const Terminal& terminal) {
  std::string line;
  size_t last_shown = 0;
  for (size_t i = 0; i < columns.size(); ++i) last_shown = layout.shown[i] ? i : last_shown;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!layout.shown[i]) continue;
    const size_t width = layout.widths[i];
    const std::string text = CutToWidth(cells[i].text, width);
    const std::string padding(width - std::min(width, DisplayWidth(text)), ' ');
    const std::string painted = terminal.Paint(cells[i].colour, text);
    const bool last = i == last_shown;
    if (columns[i].align == Column::Align::kRight) {
      line += padding + painted;
    } else {
      line += last ? painted : painted + padding;
    }
    if (!last) line += std::string(kGap, ' ');
  }
  const size_t end = line.find_last_not_of(' ');
  return line.substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
}

}  // namespace

std::string FormatTable(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                        const Terminal& terminal) {
  if (columns.empty()) return "";
  std::vector<std::vector<Cell>> safe = rows;
  for (std::vector<Cell>& row : safe) {
    CHECK(row.size() == columns.size());
    for (Cell& cell : row) cell.text = OneLine(cell.text);
  }
  const Layout layout =
      FitTo(terminal.width > 0 ? static_cast<size_t>(terminal.width) : 0, columns, NaturalWidths(columns, safe));
  std::vector<Cell> titles;
  for (const Column& column : columns) titles.emplace_back(std::string(column.title), Colour::kBold);
  std::string table = Line(columns, layout, titles, terminal);
  for (const std::vector<Cell>& row : safe) {
    table += Line(columns, layout, row, terminal);
    for (size_t i = 0; i < columns.size(); ++i) {
      if (!layout.below[i] || row[i].text.empty()) continue;
      const auto width = static_cast<size_t>(terminal.width) - std::min<size_t>(kBelowIndent, terminal.width - 1);
      table += std::string(kBelowIndent, ' ') + terminal.Paint(row[i].colour, CutToWidth(row[i].text, width)) + "\n";
    }
  }
  return table;
}

}  // namespace aimaster::cli
