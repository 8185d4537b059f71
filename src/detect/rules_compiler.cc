// rules_compiler errors.yaml out.cc: turns the taxonomy into C++ while building: the rules as a table, their patterns
// as a compiled database. Compiling the patterns at the start of each program was rejected: it costs as much time as
// everything else that happens until the first rank runs.
#include <hs/hs.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "detect/rule_table.h"
#include "detect/rules_yaml.h"

namespace {

using namespace aimaster;

[[noreturn]] void Die(const std::string& message) {
  std::cerr << message << "\n";
  std::exit(1);
}

std::string Literal(std::string_view text) {
  std::string literal = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\' || c == '?') {
      literal += '\\';
      literal += static_cast<char>(c);
    } else if (c < 0x20 || c >= 0x7f) {
      char octal[8];
      std::snprintf(octal, sizeof octal, "\\%03o", c);
      literal += octal;
    } else {
      literal += static_cast<char>(c);
    }
  }
  return literal + "\"";
}

template <typename T, typename Print>
std::string Braced(const std::vector<T>& items, Print print) {
  std::string text = "{";
  for (const T& item : items) text += (text.size() > 1 ? ", " : "") + print(item);
  return text + "}";
}

template <typename Enum>
std::string Cast(const char* type, Enum value) {
  return std::string("static_cast<") + type + ">(" + std::to_string(static_cast<int>(value)) + ")";
}

std::string RuleLiteral(const Rule& rule) {
  const auto number = [](int value) { return std::to_string(value); };
  std::ostringstream out;
  out << "      {.code = " << Literal(rule.code) << ",\n       .category = " << Cast("Category", rule.category)
      << ",\n       .fault_class = " << Cast("FaultClass", rule.fault_class)
      << ",\n       .role = " << Cast("RuleRole", rule.role)
      << ",\n       .retryable = " << Cast("Retryable", rule.retryable)
      << ",\n       .severity = " << Cast("Severity", rule.severity)
      << ",\n       .node_suspect = " << (rule.node_suspect ? "true" : "false")
      << ",\n       .message = " << Literal(rule.message) << ",\n       .advice = " << Literal(rule.advice)
      << ",\n       .patterns = " << Braced(rule.patterns, Literal)
      << ",\n       .frames = " << Braced(rule.frames, Literal)
      << ",\n       .exit_codes = " << Braced(rule.exit_codes, number)
      << ",\n       .signals = " << Braced(rule.signals, number)
      << ",\n       .endings = " << Braced(rule.endings, [](Ending ending) { return Cast("Ending", ending); })
      << "},\n";
  return out.str();
}

std::string PatternName(const RuleSet& set, const Pattern& pattern) {
  return pattern.kind == PatternKind::kNeverRoot ? "never_root" : "rule '" + set.rules[pattern.rule].code + "'";
}

std::vector<char> CompilePatterns(const RuleSet& set) {
  const std::vector<Pattern> patterns = ListPatterns(set);
  std::vector<std::string> texts;
  for (const Pattern& pattern : patterns) texts.emplace_back(pattern.text);
  std::vector<const char*> expressions;
  std::vector<unsigned> flags, ids;
  for (size_t i = 0; i < texts.size(); ++i) {
    expressions.push_back(texts[i].c_str());
    flags.push_back(HS_FLAG_SINGLEMATCH);  // whether a line matches is all that we ask
    ids.push_back(static_cast<unsigned>(i));
  }
  hs_platform_info_t any_machine{};  // the least that Vectorscan runs on, so that a build serves the whole cluster
  any_machine.tune = HS_TUNE_FAMILY_GENERIC;
  hs_database_t* database = nullptr;
  hs_compile_error_t* error = nullptr;
  if (hs_compile_multi(expressions.data(), flags.data(), ids.data(), static_cast<unsigned>(texts.size()), HS_MODE_BLOCK,
                       &any_machine, &database, &error) != HS_SUCCESS) {
    const bool known = error->expression >= 0 && static_cast<size_t>(error->expression) < patterns.size();
    Die("rules: " +
        (known ? PatternName(set, patterns[error->expression]) + ": pattern '" + texts[error->expression] + "'"
               : std::string("the patterns")) +
        " can't be compiled: " + error->message);
  }
  char* bytes = nullptr;
  size_t length = 0;
  if (hs_serialize_database(database, &bytes, &length) != HS_SUCCESS) Die("rules: the database can't be serialised");
  std::vector<char> serialised(bytes, bytes + length);
  std::free(bytes);
  hs_free_database(database);
  return serialised;
}

std::string Generate(const RuleSet& set, const std::vector<char>& database) {
  std::ostringstream out;
  out << "// Generated from rules/errors.yaml by rules_compiler.\n#include \"detect/built_in_rules.h\"\n\n"
      << "namespace aimaster {\n\nRuleSet BuiltInRuleSet() {\n  return RuleSet{.rules = {\n";
  for (const Rule& rule : set.rules) out << RuleLiteral(rule);
  out << "  }, .never_root = " << Braced(set.never_root, Literal) << "};\n}\n\n"
      << "// A literal, which compilers read faster than a list of numbers.\n"
      << "alignas(64) static const char kDatabase[] =";
  for (size_t i = 0; i < database.size(); ++i) {
    if (i % 32 == 0) out << (i == 0 ? "\n  \"" : "\"\n  \"");
    const auto byte = static_cast<unsigned char>(database[i]);
    out << '\\' << byte / 64 << byte / 8 % 8 << byte % 8;
  }
  out << "\";\n\nstd::span<const char> BuiltInPatternDatabase() {\n"
      << "  return {kDatabase, sizeof kDatabase - 1};\n}\n\n}  // namespace aimaster\n";
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) Die("usage: rules_compiler errors.yaml out.cc");
  std::ifstream in(argv[1], std::ios::binary);
  if (!in) Die(std::string("rules: can't read ") + argv[1]);
  const std::string yaml(std::istreambuf_iterator<char>(in), {});
  const Result<RuleSet> set = ParseRulesYaml(yaml);
  if (!set) Die(std::string(argv[1]) + ": " + set.error().message);
  if (const Result<RuleTable> table = RuleTable::Make(*set); !table)
    Die(std::string(argv[1]) + ": " + table.error().message);

  std::ofstream out(argv[2], std::ios::binary | std::ios::trunc);
  out << Generate(*set, CompilePatterns(*set));
  out.close();
  if (!out) Die(std::string("rules: can't write ") + argv[2]);
  return 0;
}
