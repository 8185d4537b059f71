// aimaster-agent: see agent.h.
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "agent/agent.h"
#include "agent/descriptor_limit.h"
#include "agent/error_file.h"
#include "agent/frame_check.h"
#include "agent/limits.h"
#include "agent/log.h"
#include "agent/small_file.h"
#include "agent/stack_capture.h"

namespace aimaster::agent {
namespace {

constexpr const char* kUsage =
    "usage: aimaster-agent --job-dir DIR --node N --node-name NAME [--address ADDR] [--log-root DIR]\n";
constexpr int kLockPatienceMs = 2000;

Result<uint32_t> ParseNode(std::string_view text) {
  uint32_t node = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), node);
  if (error == std::errc{} && end == text.data() + text.size()) return node;
  return Fail(ErrorKind::kUsage, "--node '" + std::string(text) + "' is not a number");
}

Result<AgentOptions> ParseOptions(int argc, char** argv) {
  static const option kOptions[] = {
      {"job-dir", required_argument, nullptr, 'j'},   {"node", required_argument, nullptr, 'n'},
      {"node-name", required_argument, nullptr, 'm'}, {"address", required_argument, nullptr, 'a'},
      {"log-root", required_argument, nullptr, 'l'},  {nullptr, 0, nullptr, 0}};
  AgentOptions options;
  bool has_node = false;
  opterr = 0;
  for (int name = 0; (name = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (name) {
      case 'j':
        options.job_directory = optarg;
        break;
      case 'n': {
        const Result<uint32_t> node = ParseNode(optarg);
        if (!node) return std::unexpected(node.error());
        options.node = *node;
        has_node = true;
        break;
      }
      case 'm':
        options.node_name = optarg;
        break;
      case 'a':
        options.address = SafeText(optarg);
        break;
      case 'l':
        options.log_root = optarg;
        break;
      default:
        return Fail(ErrorKind::kUsage, "'" + std::string(argv[optind - 1]) + "' is not an option, or lacks its value");
    }
  }
  if (optind != argc) return Fail(ErrorKind::kUsage, "unexpected argument '" + std::string(argv[optind]) + "'");
  if (!options.job_directory.starts_with('/')) return Fail(ErrorKind::kUsage, "--job-dir must be an absolute path");
  if (!options.log_root.empty() && !options.log_root.starts_with('/')) {
    return Fail(ErrorKind::kUsage, "--log-root must be an absolute path");
  }
  if (!has_node) return Fail(ErrorKind::kUsage, "--node is missing");
  if (!IsSafeName(options.node_name)) {
    return Fail(ErrorKind::kUsage,
                "--node-name '" + options.node_name + "' must consist of letters, digits, '.', '_', '-'");
  }
  return options;
}

int Main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == kStackHelperOption) return RunStackHelper();
  Result<AgentOptions> options = ParseOptions(argc, argv);
  if (!options) {
    std::fprintf(stderr, "aimaster-agent: %s\n%s", options.error().message.c_str(), kUsage);
    return kExitUsage;
  }
  std::error_code error;
  options->shim_path = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "aimaster-shim";

  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of write(2), not our end
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  // What a dying shim leaves behind comes to us.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) != 0) LogWarning("cannot become a subreaper");
  RaiseDescriptorLimit();

  const std::string node_directory = NodeDirectory(*options);
  const auto self = ReadStat(::getpid());
  const int own_pidfd = self ? OpenPidfd({::getpid(), self->start_ticks}) : -1;
  if (own_pidfd < 0) {
    LogError("this system has no pidfd_open, or no /proc of our own: Linux 5.3 or newer is needed");
    return kExitCannotServe;
  }
  ::close(own_pidfd);
  if (const Status made = MakeDirectories(node_directory); !made) {
    LogError(made.error().message);
    return kExitCannotServe;
  }
  const Result<int> lock = LockNode(node_directory, kLockPatienceMs);
  if (!lock) {
    LogError(lock.error().message);
    return lock.error().kind == ErrorKind::kFenced ? kExitNodeTaken : kExitCannotServe;
  }
  options->node_lock = *lock;
  const auto text = ReadSmallFile(node_directory + "/agent.json", kSmallFileMaxBytes);
  AgentFile file = (text ? ParseAgentFile(*text) : std::nullopt).value_or(AgentFile{});
  file.process = {::getpid(), self->start_ticks};
  const std::string boot_id = ReadBootId();
  if (file.boot_id != boot_id) file.hang_setting.reset();  // its time is of another clock, and who set it is gone
  file.boot_id = boot_id;

  boost::asio::io_context io(1);
  Agent agent(io, std::move(*options), std::move(file));
  boost::asio::signal_set terminate(io, SIGTERM);
  terminate.async_wait([&](boost::system::error_code failed, int) {
    if (!failed) agent.Leave();
  });
  boost::asio::signal_set child(io, SIGCHLD);
  std::function<void()> watch_children = [&] {
    child.async_wait([&](boost::system::error_code failed, int) {
      if (failed) return;
      watch_children();
      agent.OnChild();
    });
  };
  watch_children();
  agent.Run();
  io.run();
  return agent.exit_code();
}

}  // namespace
}  // namespace aimaster::agent

int main(int argc, char** argv) { return aimaster::agent::Main(argc, argv); }
