#include "agent/process_identity.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <vector>

#include "agent/small_file.h"

namespace aimaster::agent {

std::optional<ProcessStat> ParseStat(std::string_view text) {
  const size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::vector<std::string_view> fields;  // from the third on
  std::string_view rest = text.substr(name_end + 1);
  while (fields.size() < 20) {
    const size_t start = rest.find_first_not_of(" \n");
    if (start == std::string_view::npos) break;
    rest.remove_prefix(start);
    const size_t length = std::min(rest.find_first_of(" \n"), rest.size());
    fields.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (fields.size() < 20) return std::nullopt;
  const auto number = [](std::string_view field, auto& value) {
    return std::from_chars(field.data(), field.data() + field.size(), value).ec == std::errc{};
  };
  ProcessStat stat;
  stat.state = fields[0][0];
  if (!number(fields[1], stat.parent) || !number(fields[3], stat.session) || !number(fields[19], stat.start_ticks)) {
    return std::nullopt;
  }
  return stat;
}

std::optional<ProcessStat> ReadStat(pid_t pid) {
  const auto text = ReadSmallFile("/proc/" + std::to_string(pid) + "/stat", 4096);
  return text ? ParseStat(*text) : std::nullopt;
}

bool IsDead(const ProcessIdentity& process) {
  const auto stat = ReadStat(process.pid);
  if (stat) return stat->start_ticks != process.start_ticks || IsDeadState(stat->state);
  // Nothing to read: it is gone, or we can't look. This asks without opening anything.
  return ::kill(process.pid, 0) != 0 && errno == ESRCH;
}

bool IsPending(std::string_view status, int signal) {
  for (const std::string_view name : {"\nSigPnd:\t", "\nShdPnd:\t"}) {
    const size_t found = status.find(name);
    uint64_t mask = 0;
    if (found == std::string_view::npos) continue;
    const char* const start = status.data() + found + name.size();
    std::from_chars(start, status.data() + status.size(), mask, 16);
    if ((mask >> (signal - 1) & 1) != 0) return true;
  }
  return false;
}

std::string ReadBootId() {
  auto text = ReadSmallFile("/proc/sys/kernel/random/boot_id", 64).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "unknown" : text;
}

int OpenPidfd(const ProcessIdentity& process) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));  // close-on-exec by itself
  if (fd < 0) return -1;
  // The descriptor may have caught the seat's next holder: look again, now that it can't change any more.
  const auto text = ReadWhole("/proc/" + std::to_string(process.pid) + "/stat", 4096);
  const auto stat = text ? ParseStat(*text) : std::nullopt;
  if (stat && stat->start_ticks == process.start_ticks) return fd;
  ::close(fd);
  errno = text || MeansAbsent(text.error()) ? ESRCH : text.error();
  return -1;
}

bool SendSignalWith(int pidfd, int signal, int value) {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_int = value;
  return ::syscall(SYS_pidfd_send_signal, pidfd, signal, &info, 0) == 0;
}

bool SendSignal(int pidfd, int signal) { return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0; }

}  // namespace aimaster::agent
