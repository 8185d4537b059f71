// Plays the processes that are hard to get rid of, for the shim's tests. Each ends by itself after a minute: a test
// that fails must not leave behind what nobody can catch.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kLifeSeconds = 60 };

static char* own_path;

static _Noreturn void Linger(void) {
  signal(SIGTERM, SIG_IGN);
  alarm(kLifeSeconds);
  for (;;) pause();
}

static void Touch(const char* path) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) exit(3);
  close(fd);
}

// A child that left the session, and a daemon that forked twice and wiped its environment; both ignore SIGTERM, as do
// we.
static void Tree(const char* ready) {
  int all_up[2];
  char byte;
  signal(SIGTERM, SIG_IGN);
  if (pipe2(all_up, O_CLOEXEC) != 0) exit(3);
  if (fork() == 0) {
    setsid();
    close(all_up[1]);
    Linger();
  }
  const pid_t middle = fork();
  if (middle == 0) {
    if (fork() != 0) _exit(0);
    setsid();
    char* const arguments[] = {own_path, "linger", NULL};
    char* const environment[] = {NULL};
    execve(own_path, arguments, environment);
    _exit(3);
  }
  waitpid(middle, NULL, 0);
  close(all_up[1]);
  if (read(all_up[0], &byte, 1) != 0) exit(3);  // ends when the last of them closed it or became another program
  Touch(ready);
  Linger();
}

// Never the same process for longer than it takes to fork, so that whoever looks comes too late.
static void Evade(const char* ready) {
  signal(SIGTERM, SIG_IGN);
  if (fork() != 0) return;
  Touch(ready);
  const time_t end = time(NULL) + kLifeSeconds;
  while (time(NULL) < end) {
    const pid_t next = fork();
    if (next > 0) _exit(0);
    if (next < 0) sched_yield();
  }
}

// Runs set-user-id root: becomes a process that our user may not signal.
static void Untouchable(const char* ready) {
  if (setresuid(0, 0, 0) != 0) exit(3);
  Touch(ready);
  Linger();
}

int main(int argc, char** argv) {
  own_path = argv[0];
  if (argc == 2 && strcmp(argv[1], "linger") == 0) Linger();
  if (argc != 3) return 2;
  if (strcmp(argv[1], "tree") == 0) Tree(argv[2]);
  if (strcmp(argv[1], "evade") == 0) Evade(argv[2]);
  if (strcmp(argv[1], "untouchable") == 0) Untouchable(argv[2]);
  return 0;
}
