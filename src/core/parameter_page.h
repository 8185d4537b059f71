// The parameter table as people read it: on a terminal, as a page of the docs, and as plain texts for JSON and the web
// form.
#pragma once

#include <string>
#include <vector>

#include "core/parameter_table.h"

namespace aimaster {

// One row, in words.
struct ParameterDescription {
  std::string name;  // without dashes
  std::vector<std::string> aliases;
  std::string group;                 // "restart"
  std::string type;                  // "bool"
  std::string values;                // "True, False"
  std::vector<std::string> choices;  // of bools and choices
  std::string default_text;
  std::string unit;  // "seconds", "bytes" or empty
  std::string help;
  std::string details;
  std::string example;
  std::string since;
  bool ignored = false;  // accepted without effect, for compatibility
};

std::vector<ParameterDescription> DescribeParameters();

// A table for a terminal: name, default, meaning, values.
std::string ParametersText();
// The whole of docs/parameters.md.
std::string ParametersMarkdown();

}  // namespace aimaster
