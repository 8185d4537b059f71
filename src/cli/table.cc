#include "cli/table.h"

#include <algorithm>

#include "cli/text.h"
#include "core/check.h"

namespace aimaster::cli {
namespace {

constexpr size_t kGap = 2;            // blanks between columns
constexpr size_t kCutColumnMin = 12;  // what is left of a column that gives way

std::vector<size_t> NaturalWidths(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    size_t width = DisplayWidth(columns[i].title);
    for (const std::vector<Cell>& row : rows) width = std::max(width, DisplayWidth(row[i].text));
    widths.push_back(width);
  }
  return widths;
}

// Takes column by column from the widest of those that may give way.
void FitTo(size_t width, const std::vector<Column>& columns, std::vector<size_t>& widths) {
  size_t total = kGap * (columns.size() - 1);
  for (const size_t w : widths) total += w;
  while (total > width) {
    size_t widest = columns.size();
    for (size_t i = 0; i < columns.size(); ++i) {
      const bool gives = columns[i].may_be_cut && widths[i] > kCutColumnMin;
      if (gives && (widest == columns.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == columns.size()) return;
    --widths[widest];
    --total;
  }
}

std::string Line(const std::vector<Column>& columns, const std::vector<size_t>& widths, const std::vector<Cell>& cells,
                 const Terminal& terminal) {
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string text = CutToWidth(cells[i].text, widths[i]);
    const std::string padding(widths[i] - std::min(widths[i], DisplayWidth(text)), ' ');
    const std::string painted = terminal.Paint(cells[i].colour, text);
    const bool last = i + 1 == columns.size();
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
  std::vector<size_t> widths = NaturalWidths(columns, safe);
  if (terminal.width > 0) FitTo(static_cast<size_t>(terminal.width), columns, widths);

  std::vector<Cell> titles;
  for (const Column& column : columns) titles.emplace_back(std::string(column.title), Colour::kBold);
  std::string table = Line(columns, widths, titles, terminal);
  for (const std::vector<Cell>& row : safe) table += Line(columns, widths, row, terminal);
  return table;
}

}  // namespace aimaster::cli
