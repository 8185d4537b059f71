#include "notify/plan_yaml.h"

#include <gtest/gtest.h>

#include <string>

namespace aimaster::notify {
namespace {

constexpr const char* kRules = "rules:\n- {events: '*', sinks: ops}\n";

Surroundings InADirectory() {
  return {.file = "notify.yaml",
          .directory = "/etc/ml",
          .variable = [](const std::string& name) -> std::optional<std::string> {
            return name == "HOOK" ? std::optional<std::string>("hooked") : std::nullopt;
          },
          .check_file = [](const std::filesystem::path& path) -> Status {
            if (path.filename() != "gone") return {};
            return Fail(ErrorKind::kUsage, path.string() + ": No such file or directory");
          }};
}

std::string ErrorOf(const std::string& text) {
  const Result<Plan> plan = ParsePlanYaml(text, InADirectory());
  return plan ? "accepted" : plan.error().message;
}

// A file with one webhook and a rule for it; `line` is one more of the webhook's.
std::string Webhook(const std::string& line) {
  return "sinks:\n  ops:\n    type: webhook\n    url: https://example.org/hook\n" +
         (line.empty() ? "" : "    " + line + "\n") + kRules;
}

TEST(PlanYamlTest, ReadsEveryKindOfSink) {
  const Result<Plan> plan = ParsePlanYaml(R"(
sinks:
  ops:
    type: webhook
    url: {env: HOOK_URL}
    secret: {file: secrets/hook}
    headers: {X-Team: ml, Authorization: {env: HOOK}}
    timeout: 2s
    retry_for: 90m
    per_minute: 6
    ca_file: ca.pem
  chat: {type: slack, url: 'https://hooks.example.org/x'}
  ding: {type: dingtalk, url: 'https://oapi.example.org/robot/send?access_token=t', secret: SECx}
  fei: {type: feishu, url: 'https://open.example.org/hook/t', secret: s}
  wecom: {type: wecom, url: 'https://qyapi.example.org/cgi-bin/webhook/send?key=k'}
  mail:
    type: smtp
    server: smtp.example.org
    security: starttls
    user: me
    password: {env: HOOK}
    from: aimaster@example.org
    to: [a@example.org, b@example.org]
  page: {type: command, command: [./page.sh, --loud], timeout: 500ms}
rules:
- events: [Automatic Fault Tolerance, 'aimaster.job.*']
  jobs: 'llama-*'
  severity: warning
  sinks: [ops, mail]
- {events: '*', sinks: page}
drain: 5
)",
                                          {.file = "notify.yaml",
                                           .directory = "/etc/ml",
                                           .variable = [](const std::string& name) -> std::optional<std::string> {
                                             return name == "HOOK_URL" ? "https://example.org/hook" : "hooked";
                                           },
                                           .check_file = {}});
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->sinks.size(), 7u);
  const Sink& ops = plan->sinks[0];
  EXPECT_EQ(ops.url.text, "https://example.org/hook");
  EXPECT_EQ(ops.secret.file, "/etc/ml/secrets/hook");
  EXPECT_EQ(ops.headers, (std::vector<Header>{{"X-Team", {"ml", ""}}, {"Authorization", {"hooked", ""}}}));
  EXPECT_EQ(ops.timeout, milliseconds(2000));
  EXPECT_EQ(ops.retry_for, milliseconds(5'400'000));
  EXPECT_EQ(ops.per_minute, 6);
  EXPECT_EQ(ops.ca_file, "/etc/ml/ca.pem");
  const Sink& mail = plan->sinks[5];
  EXPECT_EQ(mail.port, 587);
  EXPECT_EQ(mail.password.text, "hooked");
  EXPECT_EQ(mail.to.size(), 2u);
  const Sink& page = plan->sinks[6];
  EXPECT_EQ(page.command, (std::vector<std::string>{"/etc/ml/page.sh", "--loud"}));
  EXPECT_EQ(page.timeout, milliseconds(500));
  EXPECT_EQ(plan->drain, milliseconds(5000));
  EXPECT_EQ(plan->variables, (std::vector<std::string>{"HOOK_URL", "HOOK"})) << "each once";
  EXPECT_EQ(plan->rules[0].events,
            (std::vector<std::string>{"aimaster.round.restarting", "aimaster.instance.restarting", "aimaster.job.*"}));
  EXPECT_EQ(plan->rules[0].severity, EventSeverity::kWarning);
  EXPECT_EQ(plan->rules[1].sinks, std::vector<std::string>{"page"});
}

TEST(PlanYamlTest, NamesTheLineWhatIsWrongAndWhatWasMeant) {
  EXPECT_EQ(ErrorOf(Webhook("timout: 3s")), "notify.yaml:5: sink 'ops': unknown key 'timout'; did you mean timeout?");
  EXPECT_EQ(ErrorOf(Webhook("colour: red")),
            "notify.yaml:5: sink 'ops': unknown key 'colour'; known are type, url, secret, headers, follow_redirects, "
            "ca_file, timeout, retry_for, per_minute");
  EXPECT_EQ(ErrorOf(Webhook("timeout: soon")),
            "notify.yaml:5: sink 'ops': 'timeout': 'soon' is no time from 100ms to 600s (30s, 500ms, 5m, 1h)");
  EXPECT_EQ(ErrorOf(Webhook("per_minute: 0")),
            "notify.yaml:5: sink 'ops': 'per_minute': '0' is no whole number 1 … 6000");
  EXPECT_EQ(ErrorOf("sinks:\n  ops: {type: webhok, url: 'https://a'}\n"),
            "notify.yaml:2: sink 'ops': 'type': 'webhok' is not one of webhook, slack, dingtalk, feishu, wecom, smtp, "
            "command; did you mean webhook?");
  EXPECT_EQ(ErrorOf("sinks:\n  ops: {type: webhook}\n"), "notify.yaml:2: sink 'ops': 'url' is missing");
  EXPECT_EQ(ErrorOf("sinks:\n  ops: {type: slack, url: 'ftp://a'}\n"),
            "notify.yaml:2: sink 'ops': 'url': an address begins with https:// or http://");
  EXPECT_EQ(ErrorOf("sinks:\n  ops: {type: slack, url: 'https://a', secret: s}\n"),
            "notify.yaml:2: sink 'ops': unknown key 'secret'; known are type, url, ca_file, timeout, retry_for, "
            "per_minute");
  EXPECT_EQ(ErrorOf(Webhook("secret: {env: HOKO}")),
            "notify.yaml:5: sink 'ops': 'secret': the variable 'HOKO' is not set");
  EXPECT_EQ(ErrorOf(Webhook("secret: {file: gone}")),
            "notify.yaml:5: sink 'ops': 'secret.file': /etc/ml/gone: No such file or directory");
  EXPECT_EQ(ErrorOf("sinks:\n  ops: {type: command, command: page --all}\n"),
            "notify.yaml:2: sink 'ops': 'command' must be a list of words: it is executed without a shell");
}

TEST(PlanYamlTest, ARuleNamesWhatThereIs) {
  const std::string sinks = "sinks:\n  ops: {type: slack, url: 'https://a'}\nrules:\n";
  EXPECT_EQ(
      ErrorOf(sinks + "- {events: aimaster.rond.*, sinks: ops}\n"),
      "notify.yaml:4: rule 1: 'events': no event is called 'aimaster.rond.*'; `aimaster notify events` lists them");
  EXPECT_EQ(ErrorOf(sinks + "- {events: aimaster.job.faild, sinks: ops}\n"),
            "notify.yaml:4: rule 1: 'events': no event is called 'aimaster.job.faild'; did you mean "
            "aimaster.job.failed?");
  EXPECT_EQ(ErrorOf(sinks + "- {events: '*', sinks: opps}\n"),
            "notify.yaml:4: rule 1: 'sinks': there is no sink 'opps'; did you mean ops?");
  EXPECT_EQ(ErrorOf(sinks + "- {events: '*', sinks: ops, severity: warn}\n"),
            "notify.yaml:4: rule 1: 'severity': 'warn' is not one of info, warning, error");
  EXPECT_EQ(ErrorOf("sinks:\n  ops: {type: slack, url: 'https://a'}\n"),
            "notify.yaml:1: 'rules' must be a list of rules; without one nothing would ever be sent");
}

TEST(PlanYamlTest, AMailHasAddressesAndAPasswordThatIsNotSentInTheOpenUnlessSaid) {
  const auto mail = [](const std::string& rest) {
    return "sinks:\n  ops: {type: smtp, server: 'mx:2525', from: a@b.c, to: d@e.f" + rest + "}\n" + kRules;
  };
  const Result<Plan> plan = ParsePlanYaml(mail(""), InADirectory());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->sinks[0].security, MailSecurity::kStartTls);
  EXPECT_EQ(plan->sinks[0].host, "mx");
  EXPECT_EQ(plan->sinks[0].port, 2525);
  EXPECT_EQ(ErrorOf(mail(", user: me")), "notify.yaml:2: sink 'ops': 'user' and 'password' are given together or not");
  EXPECT_EQ(ErrorOf("sinks:\n  ops: {type: smtp, server: mx, from: \"a@b\\r\\nBcc: x\", to: d@e.f}\n"),
            "notify.yaml:2: sink 'ops': 'from' must be one line");
  EXPECT_EQ(ErrorOf("sinks:\n  ops: {type: smtp, server: 'mx:70000', from: a@b.c, to: d@e.f}\n"),
            "notify.yaml:2: sink 'ops': 'server': '70000' is no port");
}

// A secret stands in the file; what is wrong with it may be told, and it may not.
TEST(PlanYamlTest, NoErrorQuotesASecret) {
  for (const std::string& text :
       {Webhook("secret: [hunter2]"), Webhook("secret: {env: hunter2, file: x}"), Webhook("headers: {X: [hunter2]}"),
        std::string("sinks:\n  ops: {type: slack, url: 'hunter2://x'}\n"),
        std::string("sinks:\n  ops: {type: slack, url: 'https://x/hunter2 y'}\n"),
        std::string("sinks:\n  ops: {type: slack, url: \"https://x/hunter2\n  'broken\n"),
        Webhook("secret: \"hunter2\\nsecond line\"")}) {
    const std::string error = ErrorOf(text);
    EXPECT_NE(error, "accepted") << text;
    EXPECT_EQ(error.find("hunter2"), std::string::npos) << error;
  }
}

TEST(PlanYamlTest, RefusesWhatIsNoNotifyFile) {
  EXPECT_EQ(ErrorOf(""), "notify.yaml: must hold sinks, rules, drain");
  EXPECT_EQ(ErrorOf("sinks: 3\n"), "notify.yaml:1: 'sinks' must name at least one");
  EXPECT_EQ(ErrorOf("sinks: [\n"), "notify.yaml:2: not valid YAML here: check quotes, brackets and the indentation");
  EXPECT_EQ(ErrorOf(Webhook("") + "---\nsinks: {}\n"),
            "notify.yaml: more than one document: all but one would be lost");
  EXPECT_EQ(ErrorOf(std::string(kFileMaxBytes + 1, ' ')), "notify.yaml: larger than 256 KiB");
  EXPECT_NE(ErrorOf(std::string(100'000, '[')).find("not valid YAML"), std::string::npos) << "deep nesting";
  EXPECT_EQ(ErrorOf(Webhook("url: https://b")), "notify.yaml:5: sink 'ops': key 'url' is there twice");
  EXPECT_NE(ErrorOf("sinks: &s {ops: *s}\n"), "accepted") << "a map within itself";
}

TEST(PlanYamlTest, BoundsEverything) {
  std::string sinks = "sinks:\n";
  for (size_t i = 0; i <= kSinksMax; ++i) sinks += "  s" + std::to_string(i) + ": {type: slack, url: 'https://a'}\n";
  EXPECT_EQ(ErrorOf(sinks), "notify.yaml:2: more than 50 sinks");
  std::string rules = "sinks:\n  ops: {type: slack, url: 'https://a'}\nrules:\n";
  for (size_t i = 0; i <= kRulesMax; ++i) rules += "- {events: '*', sinks: ops}\n";
  EXPECT_EQ(ErrorOf(rules), "notify.yaml:4: more than 200 rules");
  EXPECT_EQ(ErrorOf(Webhook("secret: " + std::string(kTextMaxBytes + 1, 'x'))),
            "notify.yaml:5: sink 'ops': 'secret' is too long");
}

}  // namespace
}  // namespace aimaster::notify
