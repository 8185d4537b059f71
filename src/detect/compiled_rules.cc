#include "detect/compiled_rules.h"

#include <hs/hs_common.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/fnv1a.h"
#include "detect/rule_merge.h"
#include "detect/rule_table.h"

namespace aimaster {
namespace {

constexpr std::string_view kMagic = "AIMRULES";
constexpr uint32_t kFormat = 1;
constexpr size_t kDigestBytes = 8;

class Writer {
 public:
  void Number(uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(value >> shift & 0xff);
  }
  void Text(std::string_view text) {
    Number(static_cast<uint32_t>(text.size()));
    bytes_ += text;
  }
  void Texts(const std::vector<std::string>& texts) {
    Number(static_cast<uint32_t>(texts.size()));
    for (const std::string& text : texts) Text(text);
  }
  void Numbers(const std::vector<int>& numbers) {
    Number(static_cast<uint32_t>(numbers.size()));
    for (int number : numbers) Number(static_cast<uint32_t>(number));
  }
  std::string Take() {
    const uint64_t digest = Fnv1a(bytes_);
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(digest >> shift & 0xff);
    return std::move(bytes_);
  }

 private:
  std::string bytes_{kMagic};
};

// After the first thing that is wrong everything is empty, and failed() says so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint32_t Number() {
    const std::string_view bytes = Bytes(4);
    uint32_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << 8 * i;
    return value;
  }
  std::string Text() { return std::string(Bytes(Number())); }
  // Each of so many takes four bytes at least: nobody's word is taken for how much memory it needs.
  size_t Count() {
    const uint32_t count = Number();
    if (count > rest_.size() / 4) failed_ = true;
    return failed_ ? 0 : count;
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts(Count());
    for (std::string& text : texts) text = Text();
    return texts;
  }
  std::vector<int> Numbers() {
    std::vector<int> numbers(Count());
    for (int& number : numbers) number = static_cast<int>(Number());
    return numbers;
  }
  template <typename T>
  T Named(std::optional<T> (*parse)(std::string_view)) {
    const std::optional<T> value = parse(Text());
    if (!value) failed_ = true;
    return value.value_or(T{});
  }
  bool failed() const { return failed_; }
  bool is_at_end() const { return rest_.empty(); }
  void Fail() { failed_ = true; }

 private:
  std::string_view Bytes(size_t count) {
    if (count > rest_.size()) failed_ = true;
    if (failed_) return {};
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }

  std::string_view rest_;
  bool failed_ = false;
};

void WriteRule(Writer& out, const Rule& rule) {
  out.Text(rule.code), out.Text(Name(rule.category)), out.Text(Name(rule.fault_class));
  out.Text(Name(rule.role)), out.Text(Name(rule.retryable));
  out.Number(static_cast<uint32_t>(rule.severity)), out.Number(rule.node_suspect ? 1 : 0);
  out.Text(rule.message), out.Text(rule.advice);
  out.Texts(rule.patterns), out.Texts(rule.frames);
  out.Numbers(rule.exit_codes), out.Numbers(rule.signals);
  std::vector<std::string> endings;
  for (const Ending ending : rule.endings) endings.emplace_back(Name(ending));
  out.Texts(endings);
}

Rule ReadRule(Reader& in) {
  Rule rule;
  rule.code = in.Text();
  rule.category = in.Named(ParseCategory);
  rule.fault_class = in.Named(ParseFaultClass);
  rule.role = in.Named(ParseRuleRole);
  rule.retryable = in.Named(ParseRetryable);
  const uint32_t severity = in.Number();
  if (severity < 1 || severity > 3) in.Fail();
  rule.severity = static_cast<Severity>(severity);
  rule.node_suspect = in.Number() == 1;
  rule.message = in.Text();
  rule.advice = in.Text();
  rule.patterns = in.Texts();
  rule.frames = in.Texts();
  rule.exit_codes = in.Numbers();
  rule.signals = in.Numbers();
  for (const std::string& name : in.Texts()) {
    if (const std::optional<Ending> ending = ParseEnding(name)) {
      rule.endings.push_back(*ending);
    } else {
      in.Fail();
    }
  }
  return rule;
}

}  // namespace

std::string ThisBuild() { return AIMASTER_VERSION " " + HashOf(RuleTable::BuiltIn().set()) + " " + hs_version(); }

std::string Encode(const CompiledRules& rules) {
  Writer out;
  out.Number(kFormat);
  out.Text(rules.build);
  out.Text(rules.source);
  out.Number(static_cast<uint32_t>(rules.rules.rules.size()));
  for (const Rule& rule : rules.rules.rules) WriteRule(out, rule);
  out.Texts(rules.rules.never_root);
  out.Text(rules.patterns.lines);
  out.Text(rules.patterns.words);
  out.Text(rules.patterns.short_words);
  out.Number(rules.patterns.every_line ? 1 : 0);
  return out.Take();
}

Result<CompiledRules> DecodeCompiledRules(std::string_view bytes) {
  const auto damaged = [] { return Fail(ErrorKind::kEnvironment, "the compiled rules are damaged"); };
  if (bytes.size() < kMagic.size() + kDigestBytes || !bytes.starts_with(kMagic)) return damaged();
  const std::string_view signed_bytes = bytes.substr(0, bytes.size() - kDigestBytes);
  uint64_t digest = 0;
  for (size_t i = 0; i < kDigestBytes; ++i) {
    digest |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[signed_bytes.size() + i])) << 8 * i;
  }
  if (digest != Fnv1a(signed_bytes)) return damaged();
  Reader in(signed_bytes.substr(kMagic.size()));
  if (in.Number() != kFormat) return Fail(ErrorKind::kVersion, "the compiled rules are of a newer version");
  CompiledRules rules;
  rules.build = in.Text();
  rules.source = in.Text();
  const size_t count = in.Count();
  for (size_t i = 0; i < count && !in.failed(); ++i) rules.rules.rules.push_back(ReadRule(in));
  rules.rules.never_root = in.Texts();
  rules.patterns.lines = in.Text();
  rules.patterns.words = in.Text();
  rules.patterns.short_words = in.Text();
  rules.patterns.every_line = in.Number() == 1;
  if (in.failed() || !in.is_at_end()) return damaged();
  return rules;
}

}  // namespace aimaster
