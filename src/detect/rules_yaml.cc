#include "detect/rules_yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>

#include "detect/yaml_documents.h"

namespace aimaster {
namespace {

// Carries an error out of the depths of this file; it never leaves it (yaml-cpp throws anyway).
struct Refused {
  std::string message;
};

// Where we are, for error messages: "rule 'CudaEcc'", or "rule 3" before its code is known.
struct Place {
  std::string rule;
  std::string field;
};

[[noreturn]] void Refuse(const YAML::Node& node, const Place& place, const std::string& what) {
  std::string message = "rules: ";
  if (node.IsDefined() && node.Mark().line >= 0) message += "line " + std::to_string(node.Mark().line + 1) + ": ";
  if (!place.rule.empty()) message += place.rule + ": ";
  if (!place.field.empty()) message += "field '" + place.field + "': ";
  throw Refused{message + what};
}

constexpr std::string_view kTextTag = "tag:yaml.org,2002:str";

std::string Short(const std::string& text) { return text.size() <= 60 ? text : text.substr(0, 60) + "…"; }

// Known fields only: a misspelt field that is silently ignored is a rule that silently does something else.
void CheckFields(const YAML::Node& node, const Place& place, std::initializer_list<std::string_view> known) {
  if (!node.IsMap()) Refuse(node, place, "must be a map");
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string names;
      for (std::string_view each : known) names += (names.empty() ? "" : ", ") + std::string(each);
      Refuse(entry.first, place, "unknown field '" + Short(name) + "'; known are " + names);
    }
    if (!seen.insert(name).second) Refuse(entry.first, place, "field '" + name + "' is there twice");
  }
}

std::string Text(const YAML::Node& node, const Place& place, size_t max_bytes) {
  if (!node.IsDefined()) Refuse(node, place, "is missing");
  if (!node.IsScalar()) Refuse(node, place, "must be a text");
  // "?" and "!": written without a tag, plain or in quotes.
  if (const std::string& tag = node.Tag(); !tag.empty() && tag != "?" && tag != "!" && tag != kTextTag) {
    Refuse(node, place, "has the tag '" + Short(tag) + "'; texts have none");
  }
  std::string text = node.Scalar();
  if (text.empty()) Refuse(node, place, "must not be empty");
  if (text.size() > max_bytes) Refuse(node, place, "is longer than " + std::to_string(max_bytes) + " bytes");
  if (text.find('\0') != std::string::npos) Refuse(node, place, "must not hold a NUL byte");
  return text;
}

int Number(const YAML::Node& node, const Place& place, int least, int greatest) {
  const std::string text = Text(node, place, kRuleTextMaxBytes);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > greatest) {
    Refuse(node, place,
           "'" + Short(text) + "' is no whole number " + std::to_string(least) + " … " + std::to_string(greatest));
  }
  return value;
}

template <typename T>
std::vector<T> List(const YAML::Node& node, const Place& place, const std::function<T(const YAML::Node&)>& item) {
  std::vector<T> items;
  if (!node.IsDefined()) return items;
  if (!node.IsSequence() || node.size() == 0) Refuse(node, place, "must be a list with at least one item");
  if (node.size() > kPatternsPerRuleMax) {
    Refuse(node, place, "has more than " + std::to_string(kPatternsPerRuleMax) + " items");
  }
  for (const auto& each : node) items.push_back(item(each));
  return items;
}

template <typename T>
T Choice(const YAML::Node& node, const Place& place, std::optional<T> (*parse)(std::string_view),
         std::string_view allowed) {
  const std::string text = Text(node, place, kRuleTextMaxBytes);
  const std::optional<T> value = parse(text);
  if (!value) Refuse(node, place, "'" + Short(text) + "' is not one of " + std::string(allowed));
  return *value;
}

bool IsCode(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::isupper(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c); });
}

std::string PatternText(const YAML::Node& node, const Place& place, const RulesReading& reading) {
  std::string text = Text(node, place, kPatternMaxBytes);
  const Status checked = reading.check_pattern ? reading.check_pattern(text) : Status();
  if (!checked) Refuse(node, place, "'" + Short(text) + "' can't be compiled: " + checked.error().message);
  return text;
}

std::vector<std::string> Patterns(const YAML::Node& node, const Place& place, const RulesReading& reading) {
  return List<std::string>(node, place, [&](const YAML::Node& item) { return PatternText(item, place, reading); });
}

void ParseMatch(const YAML::Node& node, Place place, const RulesReading& reading, Rule& rule) {
  place.field = "match";
  CheckFields(node, place, {"patterns", "frames", "exit_codes", "signals", "endings"});
  const auto at = [&](const char* field) { return Place{place.rule, std::string("match.") + field}; };
  rule.patterns = Patterns(node["patterns"], at("patterns"), reading);
  rule.frames = Patterns(node["frames"], at("frames"), reading);
  rule.exit_codes = List<int>(node["exit_codes"], at("exit_codes"),
                              [&](const YAML::Node& item) { return Number(item, at("exit_codes"), 0, 255); });
  rule.signals = List<int>(node["signals"], at("signals"),
                           [&](const YAML::Node& item) { return Number(item, at("signals"), 1, 64); });
  rule.endings = List<Ending>(node["endings"], at("endings"), [&](const YAML::Node& item) {
    return Choice(item, at("endings"), ParseEnding,
                  "command_not_found, command_not_executable, no_resources, orphaned, out_of_memory_kill, node_lost, "
                  "process_lost, "
                  "any_exit_code, any_signal");
  });
  if (node.size() == 0) Refuse(node, place, "is empty: nothing would ever match");
}

const Rule* FindRule(const RuleSet* set, std::string_view code) {
  if (set == nullptr) return nullptr;
  const auto found = std::ranges::find(set->rules, code, &Rule::code);
  return found == set->rules.end() ? nullptr : &*found;
}

Rule ParseRule(const YAML::Node& node, size_t number, const RulesReading& reading) {
  Place place{"rule " + std::to_string(number), ""};
  if (node.IsMap() && node["code"].IsDefined() && node["code"].IsScalar()) {
    place.rule = "rule '" + Short(node["code"].Scalar()) + "'";
  }
  CheckFields(
      node, place,
      {"code", "category", "class", "role", "retryable", "severity", "node_suspect", "message", "advice", "match"});
  const auto at = [&](const char* field) { return Place{place.rule, field}; };
  const std::string code = Text(node["code"], at("code"), kRuleTextMaxBytes);
  if (!IsCode(code)) {
    Refuse(node["code"], at("code"), "must be letters and digits, the first a capital, at most 64");
  }

  const Rule* known = FindRule(reading.base, code);
  Rule rule = known ? *known : Rule{.code = code};
  // What is not there is missing, unless a known rule says it.
  const auto says = [&](const char* field) { return node[field].IsDefined() || known == nullptr; };
  if (says("category")) {
    rule.category = Choice(node["category"], at("category"), ParseCategory,
                           "hardware, network, storage, system, framework, user, preemption");
    rule.fault_class = UsualClass(rule.category);
  }
  if (const YAML::Node given = node["class"]; given.IsDefined()) {
    rule.fault_class = Choice(given, at("class"), ParseFaultClass,
                              "user_code, user_config, user_resource, user_action, gpu_hw, gpu_or_driver, node_system, "
                              "network, storage, external_service, scheduler_external, software_race, unknown");
  }
  if (says("role")) {
    rule.role = Choice(node["role"], at("role"), ParseRuleRole, "root, cascade, either, confirmation");
  }
  if (says("retryable")) {
    rule.retryable = Choice(node["retryable"], at("retryable"), ParseRetryable, "yes, no, once");
  }
  if (says("severity")) rule.severity = static_cast<Severity>(Number(node["severity"], at("severity"), 1, 3));
  if (const YAML::Node suspect = node["node_suspect"]; suspect.IsDefined()) {
    const std::string text = Text(suspect, at("node_suspect"), kRuleTextMaxBytes);
    if (text != "true" && text != "false") Refuse(suspect, at("node_suspect"), "must be true or false");
    rule.node_suspect = text == "true";
  }
  if (says("message")) rule.message = Text(node["message"], at("message"), kRuleTextMaxBytes);
  if (node["advice"].IsDefined()) rule.advice = Text(node["advice"], at("advice"), kRuleTextMaxBytes);
  if (says("match")) {
    if (!node["match"].IsDefined()) Refuse(node["match"], at("match"), "is missing");
    ParseMatch(node["match"], place, reading, rule);
  }
  return rule;
}

RuleSet ParseRoot(const YAML::Node& root, const RulesReading& reading) {
  CheckFields(root, {}, {"rules", "never_root"});
  RuleSet set;
  const YAML::Node rules = root["rules"];
  const YAML::Node lines = root["never_root"];
  const bool may_lack_rules = reading.base != nullptr && lines.IsDefined() && !rules.IsDefined();
  if (!may_lack_rules && (!rules.IsDefined() || !rules.IsSequence())) {
    Refuse(rules, {"", "rules"}, "must be a list of rules");
  }
  if (rules.IsDefined() && rules.size() > kRulesMax) {
    Refuse(rules, {"", "rules"}, "has more than " + std::to_string(kRulesMax) + " rules");
  }
  for (const auto& node : rules.IsDefined() ? rules : YAML::Node(YAML::NodeType::Sequence)) {
    Rule rule = ParseRule(node, set.rules.size() + 1, reading);
    if (FindRule(&set, rule.code)) Refuse(node, {"rule '" + rule.code + "'", ""}, "is there twice");
    set.rules.push_back(std::move(rule));
  }
  if (lines.IsDefined()) {
    const Place place{"", "never_root"};
    if (!lines.IsSequence()) Refuse(lines, place, "must be a list of regular expressions");
    if (lines.size() > kRulesMax) Refuse(lines, place, "has more than " + std::to_string(kRulesMax) + " items");
    for (const auto& line : lines) set.never_root.push_back(PatternText(line, place, reading));
  }
  return set;
}

}  // namespace

Result<RuleSet> ParseRulesYaml(std::string_view text, const RulesReading& reading) {
  if (text.size() > kRulesTextMaxBytes) {
    return Fail(ErrorKind::kUsage, "rules: the file is larger than 1 MiB: split it or remove rules");
  }
  try {
    if (HasManyDocuments(text))
      return Fail(ErrorKind::kUsage, "rules: more than one document: all but one would be lost");
    return ParseRoot(YAML::Load(std::string(text)), reading);
  } catch (const Refused& refused) {
    return Fail(ErrorKind::kUsage, refused.message);
  } catch (const YAML::Exception& exception) {
    return Fail(ErrorKind::kUsage, std::string("rules: not valid YAML: ") + exception.what());
  }
}

}  // namespace aimaster
