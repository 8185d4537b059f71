// rules_compiler errors.yaml ordinary.txt out.cc: turns the taxonomy into C++ while building: the rules as a table,
// their patterns as a compiled database. Compiling the patterns at the start of each program was rejected: it costs as
// much time as everything else that happens until the first rank runs.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "detect/launcher_words.h"
#include "detect/pattern_compiler.h"
#include "detect/pattern_literals.h"
#include "detect/rule_table.h"
#include "detect/rules_yaml.h"
#include "detect/traceback.h"

namespace {

using namespace aimaster;

[[noreturn]] void Die(const std::string& message) {
  std::cerr << message << "\n";
  std::exit(1);
}

std::string ReadText(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) Die(std::string("rules: can't read ") + path);
  return std::string(std::istreambuf_iterator<char>(in), {});
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

// A literal, which compilers read faster than a list of numbers.
void WriteBytes(std::ostream& out, const char* name, std::string_view bytes) {
  out << "alignas(64) static const char " << name << "[] =";
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % 32 == 0) out << (i == 0 ? "\n  \"" : "\"\n  \"");
    const auto byte = static_cast<unsigned char>(bytes[i]);
    out << '\\' << byte / 64 << byte / 8 % 8 << byte % 8;
  }
  out << "\";\n\n";
}

std::string Generate(const RuleSet& set, const CompiledPatterns& patterns) {
  std::ostringstream out;
  out << "// Generated from rules/errors.yaml by rules_compiler.\n#include \"detect/built_in_rules.h\"\n\n"
      << "namespace aimaster {\n\nRuleSet BuiltInRuleSet() {\n  return RuleSet{.rules = {\n";
  for (const Rule& rule : set.rules) out << RuleLiteral(rule);
  out << "  }, .never_root = " << Braced(set.never_root, Literal) << "};\n}\n\n";
  WriteBytes(out, "kLines", patterns.lines);
  WriteBytes(out, "kWords", patterns.words);
  WriteBytes(out, "kShortWords", patterns.short_words);
  out << "BuiltInDatabases BuiltInPatterns() {\n"
      << "  return {{kLines, sizeof kLines - 1}, {kWords, sizeof kWords - 1}, {kShortWords, sizeof kShortWords - "
         "1}};\n}\n\n}  // namespace aimaster\n";
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) Die("usage: rules_compiler errors.yaml ordinary.txt out.cc");
  const std::string yaml = ReadText(argv[1]), ordinary = ReadText(argv[2]);
  const std::string file = argv[1];
  const Result<RuleSet> set = ParseRulesYaml(yaml, {.base = nullptr, .check_pattern = CheckPattern});
  if (!set) Die(file + ": " + set.error().message);
  if (const Result<RuleTable> table = RuleTable::Make(*set); !table) Die(file + ": " + table.error().message);
  const std::vector<Pattern> patterns = ListPatterns(*set);
  if (const Pattern* slow = FindWithoutWords(patterns)) {
    Die(file + ": rule '" + set->rules[slow->rule].code + "': the pattern '" + std::string(slow->text) +
        "' has no plain text that stands in all that it matches, so that every line would have to be tried: reword it");
  }
  std::vector<std::string_view> also(kTracebackWords.begin(), kTracebackWords.end());
  also.insert(also.end(), kLauncherLineWords.begin(), kLauncherLineWords.end());
  const Result<CompiledPatterns> compiled = CompilePatterns(patterns, also, ordinary);
  if (!compiled) Die(file + ": " + compiled.error().message);

  std::ofstream out(argv[3], std::ios::binary | std::ios::trunc);
  out << Generate(*set, *compiled);
  out.close();
  if (!out) Die(std::string("rules: can't write ") + argv[3]);
  return 0;
}
