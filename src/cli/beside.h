// Beside: a command that runs beside a process of a job and ends with it. We stay as its parent, which a plain execve
// would have spared: a shell that outlives its attempt keeps a device or a port that the next attempt wants, and nobody
// would know whose it is.
//
// Terminal, standard input and output are the command's own; it is in our process group, so that what a terminal sends
// reaches it without our help. What is sent to us alone is passed on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/process_identity.h"

namespace aimaster::cli {

struct BesideCommand {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // complete
  std::string working_directory;
  agent::ProcessIdentity companion;  // with whose end the command ends
};

struct BesideEnd {
  int exit_code = 0;            // the command's; 128 + signal; 126 and 127 where it could not be executed
  bool with_companion = false;  // it was ended since its companion had
  std::string trouble;          // why it was not run; empty: it was
};

// Runs it to its end, with all that it started: nothing of it is left afterwards.
BesideEnd RunBeside(const BesideCommand& command);

}  // namespace aimaster::cli
