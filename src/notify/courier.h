// Courier: carries a job's events to its sinks, for as long as the job's master lives. It reads the journal as every
// reader does, holds the bookmarks of the outbox in mind, and tells the master what to mark; see talk.h.
//
// A process of its own, and not a thread of the master's: what speaks TLS, SMTP and the names of hosts is larger than
// all of the master, may hang in a resolver, and meets the outside world. The master can neither be stopped nor be
// brought down by it, and a job without notifications pays nothing.
#pragma once

#include <filesystem>

namespace aimaster::notify {

// Until standard input ends, or everything was sent after `drain`; the exit status of the process.
int ServeJob(const std::filesystem::path& job_directory);

}  // namespace aimaster::notify
