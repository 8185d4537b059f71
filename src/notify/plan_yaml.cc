#include "notify/plan_yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <span>
#include <utility>
#include <vector>

#include "core/nearest_name.h"
#include "core/quote.h"
#include "detect/yaml_documents.h"

namespace aimaster::notify {
namespace {

using Names = std::vector<std::string_view>;

// Carries an error out of the depths of this file; it never leaves it (yaml-cpp throws anyway).
struct Refused {
  std::string message;
};

std::string Joined(const Names& names) {
  std::string joined;
  for (const std::string_view name : names) joined += (joined.empty() ? "" : ", ") + std::string(name);
  return joined;
}

bool IsSinkName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.front() != '-' &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

// A token of RFC 9110.
bool IsHeaderName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) || std::string_view("!#$%&'*+-.^_`|~").contains(static_cast<char>(c));
  });
}

bool IsOneLine(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7F; });
}

bool IsMailAddress(std::string_view text) {
  const size_t at = text.find('@');
  return at != 0 && at != std::string_view::npos && at + 1 < text.size() && text.find('@', at + 1) == text.npos &&
         std::ranges::none_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7F || c == '<' || c == '>'; });
}

const Names kHttpKeys = {"type",    "url",     "secret",    "headers",   "follow_redirects",
                         "ca_file", "timeout", "retry_for", "per_minute"};
const Names kChatKeys = {"type", "url", "secret", "ca_file", "timeout", "retry_for", "per_minute"};
const Names kUnsignedChatKeys = {"type", "url", "ca_file", "timeout", "retry_for", "per_minute"};
const Names kSmtpKeys = {"type", "server",  "security", "user",      "password",  "from",
                         "to",   "ca_file", "timeout",  "retry_for", "per_minute"};
const Names kCommandKeys = {"type", "command", "timeout", "retry_for", "per_minute"};

const Names& KeysOf(SinkType type) {
  switch (type) {
    case SinkType::kWebhook:
      return kHttpKeys;
    case SinkType::kDingTalk:
    case SinkType::kFeishu:
      return kChatKeys;
    case SinkType::kSlack:
    case SinkType::kWeCom:
      return kUnsignedChatKeys;
    case SinkType::kSmtp:
      return kSmtpKeys;
    case SinkType::kCommand:
      return kCommandKeys;
  }
  return kHttpKeys;
}

class Reader {
 public:
  explicit Reader(const Surroundings& surroundings) : surroundings_(surroundings) {}

  Plan Read(const YAML::Node& root) {
    CheckKeys(root, {"sinks", "rules", "drain"});
    Plan plan;
    plan.file = surroundings_.file;
    if (const YAML::Node drain = root["drain"]) plan.drain = Time(drain, "drain", kDrainLeast, kDrainMost);
    const YAML::Node sinks = root["sinks"];
    if (!sinks || !sinks.IsMap() || sinks.size() == 0) Refuse(sinks ? sinks : root, "'sinks' must name at least one");
    if (sinks.size() > kSinksMax) Refuse(sinks, "more than " + std::to_string(kSinksMax) + " sinks");
    for (const auto& entry : sinks) plan.sinks.push_back(ReadSink(plan, entry.first, entry.second));
    const YAML::Node rules = root["rules"];
    if (!rules || !rules.IsSequence() || rules.size() == 0) {
      Refuse(rules ? rules : root, "'rules' must be a list of rules; without one nothing would ever be sent");
    }
    if (rules.size() > kRulesMax) Refuse(rules, "more than " + std::to_string(kRulesMax) + " rules");
    for (const auto& rule : rules) plan.rules.push_back(ReadRule(plan, rule));
    plan.variables = std::move(variables_);
    return plan;
  }

 private:
  [[noreturn]] void Refuse(const YAML::Node& node, const std::string& what) const {
    std::string where = surroundings_.file;
    if (node.IsDefined() && node.Mark().line >= 0) where += ":" + std::to_string(node.Mark().line + 1);
    throw Refused{where + ": " + place_ + what};
  }

  // Known keys only, each once: a misspelt one that is silently ignored is a message that never comes.
  void CheckKeys(const YAML::Node& node, const Names& known) const {
    if (!node.IsMap()) Refuse(node, "must hold " + Joined(known));
    std::vector<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (std::ranges::find(known, key) == known.end()) {
        const std::string meant = DidYouMean(key, known);
        Refuse(entry.first, "unknown key " + Quoted(key) + (meant.empty() ? "; known are " + Joined(known) : meant));
      }
      if (std::ranges::find(seen, key) != seen.end()) Refuse(entry.first, "key " + Quoted(key) + " is there twice");
      seen.push_back(key);
    }
  }

  std::string Text(const YAML::Node& node, const std::string& key) const {
    if (!node.IsDefined()) Refuse(node, "'" + key + "' is missing");
    if (!node.IsScalar()) Refuse(node, "'" + key + "' must be a text");
    std::string text = node.Scalar();
    if (text.empty()) Refuse(node, "'" + key + "' must not be empty");
    if (text.size() > kTextMaxBytes) Refuse(node, "'" + key + "' is too long");
    if (text.find('\0') != std::string::npos) Refuse(node, "'" + key + "' must not hold a NUL byte");
    return text;
  }

  std::string Line(const YAML::Node& node, const std::string& key) const {
    std::string text = Text(node, key);
    if (!IsOneLine(text)) Refuse(node, "'" + key + "' must be one line");
    return text;
  }

  // One text or a list of them.
  std::vector<std::string> Lines(const YAML::Node& node, const std::string& key) const {
    if (!node.IsDefined()) Refuse(node, "'" + key + "' is missing");
    if (node.IsScalar()) return {Line(node, key)};
    if (!node.IsSequence() || node.size() == 0) Refuse(node, "'" + key + "' must be a list with at least one item");
    if (node.size() > kItemsMax) Refuse(node, "'" + key + "' has more than " + std::to_string(kItemsMax) + " items");
    std::vector<std::string> lines;
    for (const auto& item : node) lines.push_back(Line(item, key));
    return lines;
  }

  template <typename T>
  T Choice(const YAML::Node& node, const std::string& key, std::optional<T> (*parse)(std::string_view),
           const Names& names) const {
    const std::string text = Line(node, key);
    if (const std::optional<T> value = parse(text)) return *value;
    const std::string meant = DidYouMean(text, names);
    Refuse(node, "'" + key + "': " + Quoted(text) + " is not one of " + Joined(names) + meant);
  }

  int Number(const YAML::Node& node, const std::string& key, int least, int most) const {
    const std::string text = Line(node, key);
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
      Refuse(node, "'" + key + "': " + Quoted(text) + " is no whole number " + std::to_string(least) + " … " +
                       std::to_string(most));
    }
    return value;
  }

  // "500ms", "30s", "5m", "1h"; a bare number is seconds.
  milliseconds Time(const YAML::Node& node, const std::string& key, milliseconds least, milliseconds most) const {
    const std::string text = Line(node, key);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    int64_t factor = 0;
    for (const auto& [name, number] : std::initializer_list<std::pair<std::string_view, int64_t>>{
             {"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60'000}, {"min", 60'000}, {"h", 3'600'000}}) {
      if (unit == name) factor = number;
    }
    const bool fits = error == std::errc() && factor != 0 && value >= 0 && value <= most.count() / factor;
    if (!fits || milliseconds(value * factor) < least) {
      Refuse(node, "'" + key + "': " + Quoted(text) + " is no time from " + std::to_string(least.count()) + "ms to " +
                       std::to_string(most.count() / 1000) + "s (30s, 500ms, 5m, 1h)");
    }
    return milliseconds(value * factor);
  }

  bool TrueOrFalse(const YAML::Node& node, const std::string& key) const {
    const std::string text = Line(node, key);
    if (text != "true" && text != "false") Refuse(node, "'" + key + "' must be true or false");
    return text == "true";
  }

  std::string Path(const std::string& text) const {
    return (surroundings_.directory / text).lexically_normal().string();
  }

  // A file that must be there now.
  std::string ReadableFile(const YAML::Node& node, const std::string& key) const {
    const std::string path = Path(Line(node, key));
    const Status readable = surroundings_.check_file ? surroundings_.check_file(path) : Status();
    if (!readable) Refuse(node, "'" + key + "': " + readable.error().message);
    return path;
  }

  // A text, {env: NAME}, or {file: PATH}.
  Secret ReadSecret(const YAML::Node& node, const std::string& key) {
    if (node.IsDefined() && !node.IsMap()) return {.text = Line(node, key), .file = ""};
    if (!node.IsDefined()) Refuse(node, "'" + key + "' is missing");
    CheckKeys(node, {"env", "file"});
    if (node.size() != 1) Refuse(node, "'" + key + "' is a text, {env: NAME} or {file: PATH}");
    if (node["file"]) return {.text = "", .file = ReadableFile(node["file"], key + ".file")};
    const std::string name = Line(node["env"], key + ".env");
    const std::optional<std::string> value = surroundings_.variable ? surroundings_.variable(name) : std::nullopt;
    if (!value || value->empty()) Refuse(node, "'" + key + "': the variable " + Quoted(name) + " is not set");
    if (value->size() > kTextMaxBytes || !IsOneLine(*value)) {
      Refuse(node, "'" + key + "': the variable " + Quoted(name) + " is too long, or more than one line");
    }
    if (std::ranges::find(variables_, name) == variables_.end()) variables_.push_back(name);
    return {.text = *value, .file = ""};
  }

  Sink ReadSink(const Plan& plan, const YAML::Node& key, const YAML::Node& node) {
    place_.clear();
    Sink sink;
    sink.name = key.IsScalar() ? key.Scalar() : "";
    if (!IsSinkName(sink.name)) {
      Refuse(key, "the name of a sink is letters, digits, '.', '_' and '-', at most 64: " + Quoted(sink.name));
    }
    if (std::ranges::find(plan.sinks, sink.name, &Sink::name) != plan.sinks.end()) {
      Refuse(key, "sink '" + sink.name + "' is there twice");
    }
    place_ = "sink '" + sink.name + "': ";
    if (!node.IsMap() || !node["type"]) Refuse(node.IsNull() ? key : node, "'type' is missing");
    sink.type = Choice(node["type"], "type", ParseSinkType,
                       {"webhook", "slack", "dingtalk", "feishu", "wecom", "smtp", "command"});
    CheckKeys(node, KeysOf(sink.type));
    if (node["timeout"]) sink.timeout = Time(node["timeout"], "timeout", kTimeoutLeast, kTimeoutMost);
    if (node["retry_for"]) sink.retry_for = Time(node["retry_for"], "retry_for", kRetryForLeast, kRetryForMost);
    if (node["per_minute"]) sink.per_minute = Number(node["per_minute"], "per_minute", kPerMinuteLeast, kPerMinuteMost);
    if (node["ca_file"]) sink.ca_file = ReadableFile(node["ca_file"], "ca_file");
    if (sink.type == SinkType::kSmtp) {
      ReadMail(node, sink);
    } else if (sink.type == SinkType::kCommand) {
      ReadCommand(node, sink);
    } else {
      ReadHttp(node, sink);
    }
    place_.clear();
    return sink;
  }

  void ReadHttp(const YAML::Node& node, Sink& sink) {
    sink.url = Given(node, "url") ? ReadSecret(node["url"], "url") : Secret();
    if (sink.url.file.empty()) {
      if (const Status good = CheckUrl(sink.url.text); !good) Refuse(node["url"], "'url': " + good.error().message);
    }
    if (node["secret"]) sink.secret = ReadSecret(node["secret"], "secret");
    if (node["follow_redirects"]) sink.follow_redirects = TrueOrFalse(node["follow_redirects"], "follow_redirects");
    const YAML::Node headers = node["headers"];
    if (!headers) return;
    if (!headers.IsMap() || headers.size() > kItemsMax) Refuse(headers, "'headers' must be a map of names and values");
    for (const auto& entry : headers) {
      const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (!IsHeaderName(name)) Refuse(entry.first, "'headers': " + Quoted(name) + " is no name of a header");
      sink.headers.push_back({name, ReadSecret(entry.second, "headers." + name)});
    }
  }

  // A missing key has no line of its own: the sink's is told.
  bool Given(const YAML::Node& node, const std::string& key) const {
    if (!node[key]) Refuse(node, "'" + key + "' is missing");
    return true;
  }

  void ReadMail(const YAML::Node& node, Sink& sink) {
    for (const char* key : {"server", "from", "to"}) Given(node, key);
    if (node["security"]) {
      sink.security = Choice(node["security"], "security", ParseMailSecurity, {"none", "starttls", "tls"});
    }
    ReadServer(node["server"], sink);
    sink.from = Line(node["from"], "from");
    sink.to = Lines(node["to"], "to");
    if (!IsMailAddress(sink.from)) Refuse(node["from"], "'from': " + Quoted(sink.from) + " is no mail address");
    for (const std::string& to : sink.to) {
      if (!IsMailAddress(to)) Refuse(node["to"], "'to': " + Quoted(to) + " is no mail address");
    }
    if (node["user"]) sink.user = Line(node["user"], "user");
    if (node["password"]) sink.password = ReadSecret(node["password"], "password");
    if (sink.user.empty() != !sink.password.is_set()) Refuse(node, "'user' and 'password' are given together or not");
  }

  // "smtp.example.org" or "smtp.example.org:587".
  void ReadServer(const YAML::Node& node, Sink& sink) const {
    std::string text = Line(node, "server");
    const size_t colon = text.find_last_of(":]");
    sink.port = sink.security == MailSecurity::kTls ? 465 : sink.security == MailSecurity::kStartTls ? 587 : 25;
    if (colon != std::string::npos && text[colon] == ':') {
      const std::string port = text.substr(colon + 1);
      const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), sink.port);
      if (error != std::errc() || end != port.data() + port.size() || sink.port == 0) {
        Refuse(node, "'server': " + Quoted(port) + " is no port");
      }
      text.resize(colon);
    }
    const bool is_host = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
      return std::isalnum(c) || c == '-' || c == '.' || c == ':' || c == '[' || c == ']' || c == '_';
    });
    if (!is_host) Refuse(node, "'server' is a host, or HOST:PORT");
    sink.host = text;
  }

  void ReadCommand(const YAML::Node& node, Sink& sink) const {
    Given(node, "command");
    const YAML::Node words = node["command"];
    if (!words.IsSequence()) Refuse(words, "'command' must be a list of words: it is executed without a shell");
    if (words.size() == 0 || words.size() > kItemsMax) Refuse(words, "'command' must have 1 to 100 words");
    for (const auto& word : words) sink.command.push_back(Text(word, "command"));
    // A path is the file's neighbour; a bare name is looked for in PATH.
    if (sink.command.front().find('/') != std::string::npos) sink.command.front() = Path(sink.command.front());
    sink.directory = surroundings_.directory.string();
  }

  Rule ReadRule(const Plan& plan, const YAML::Node& node) {
    place_ = "rule " + std::to_string(plan.rules.size() + 1) + ": ";
    CheckKeys(node, {"events", "jobs", "severity", "sinks"});
    for (const char* key : {"events", "sinks"}) Given(node, key);
    Rule rule;
    for (const std::string& written : Lines(node["events"], "events")) {
      const std::vector<std::string> types = TypesFor(written);
      if (types.empty()) {
        const std::string meant = DidYouMean(written, KnownEventNames());
        Refuse(node["events"], "'events': no event is called " + Quoted(written) +
                                   (meant.empty() ? "; `aimaster notify events` lists them" : meant));
      }
      rule.events.insert(rule.events.end(), types.begin(), types.end());
    }
    if (node["jobs"]) rule.jobs = Lines(node["jobs"], "jobs");
    if (node["severity"]) {
      rule.severity = Choice(node["severity"], "severity", ParseEventSeverity, {"info", "warning", "error"});
    }
    rule.sinks = Lines(node["sinks"], "sinks");
    Names names;
    for (const Sink& sink : plan.sinks) names.push_back(sink.name);
    for (const std::string& sink : rule.sinks) {
      if (std::ranges::find(names, sink) != names.end()) continue;
      const std::string meant = DidYouMean(sink, names);
      Refuse(node["sinks"],
             "'sinks': there is no sink " + Quoted(sink) + (meant.empty() ? "; there are " + Joined(names) : meant));
    }
    place_.clear();
    return rule;
  }

  const Surroundings& surroundings_;
  std::string place_;  // "sink 'ops': "
  std::vector<std::string> variables_;
};

}  // namespace

Result<Plan> ParsePlanYaml(std::string_view text, const Surroundings& surroundings) {
  const std::string& file = surroundings.file;
  if (text.size() > kFileMaxBytes) return Fail(ErrorKind::kUsage, file + ": larger than 256 KiB");
  try {
    if (HasManyDocuments(text)) {
      return Fail(ErrorKind::kUsage, file + ": more than one document: all but one would be lost");
    }
    return Reader(surroundings).Read(YAML::Load(std::string(text)));
  } catch (const Refused& refused) {
    return Fail(ErrorKind::kUsage, refused.message);
  } catch (const YAML::Exception& exception) {
    // What it says may quote the text, and that may be a secret.
    const int line = exception.mark.line;
    return Fail(ErrorKind::kUsage, file + (line >= 0 ? ":" + std::to_string(line + 1) : "") +
                                       ": not valid YAML here: check quotes, brackets and the indentation");
  }
}

}  // namespace aimaster::notify
