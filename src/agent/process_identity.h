// ProcessIdentity: a process by more than its number. A pid is a seat, not a person: it is given to someone else when
// its holder leaves. The time of its start, within one boot, tells the two apart.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace aimaster::agent {

struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/<pid>/stat
  auto operator<=>(const ProcessIdentity&) const = default;
};

// What we need of /proc/<pid>/stat.
struct ProcessStat {
  char state = '?';
  pid_t parent = 0;
  pid_t session = 0;
  uint64_t start_ticks = 0;
};
// The name in it is the program's own choice and may hold blanks and brackets.
std::optional<ProcessStat> ParseStat(std::string_view text);
std::optional<ProcessStat> ReadStat(pid_t pid);

// A zombie is dead: it runs nothing any more, and only waits to be asked.
inline bool IsDeadState(char state) { return state == 'Z' || state == 'X' || state == 'x'; }
// Only who is known to be dead is dead; who can't be looked at may live.
bool IsDead(const ProcessIdentity& process);
inline bool IsAlive(const ProcessIdentity& process) { return !IsDead(process); }

// Whether a signal was sent to it and has not been taken by it yet. `status`: the text of /proc/<pid>/status.
bool IsPending(std::string_view status, int signal);

// Of this boot of the machine; never empty.
std::string ReadBootId();

// A descriptor that stands for exactly this process, or −1, with ESRCH in errno when it does not exist (any more).
int OpenPidfd(const ProcessIdentity& process);
// False when it is gone.
bool SendSignal(int pidfd, int signal);
// With a value that goes along (sigqueue).
bool SendSignalWith(int pidfd, int signal, int value);

}  // namespace aimaster::agent
