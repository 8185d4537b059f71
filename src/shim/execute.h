// Becomes another program, as execvp does, with two differences: the PATH is the one of the environment that the
// program will get, and a file without `#!` is an error instead of being handed to a shell (where it would fail with an
// error that nobody understands, or worse, do something).
#ifndef AIMASTER_SHIM_EXECUTE_H_
#define AIMASTER_SHIM_EXECUTE_H_

// Returns only on failure, with the error that tells most.
int Execute(char* const* argv, char* const* envp);

// The PATH that counts for a program with this environment.
const char* PathOf(char* const* envp);

// 127 when there is no such command, 126 when there is one that can't be run: what shells have taught everyone.
int ExecuteExitCode(int error);

#endif  // AIMASTER_SHIM_EXECUTE_H_
