#include "shim/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t sync_pid;

int SyncSignal(void) { return SIGRTMIN; }

void SyncNow(int directory, bool (*name_at)(uint32_t index, char* name, size_t capacity), uint32_t count) {
  char name[64];
  for (uint32_t i = 0; i < count; ++i) {
    if (!name_at(i, name, sizeof name)) continue;
    const int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    fsync(fd);
    close(fd);
  }
  fsync(directory);
}

bool StartSync(int directory, bool (*name_at)(uint32_t index, char* name, size_t capacity), uint32_t count) {
  if (sync_pid != 0) return false;
  const pid_t pid = (pid_t)syscall(SYS_clone, SyncSignal(), NULL, NULL, NULL, NULL);
  if (pid == 0) {
    SyncNow(directory, name_at, count);
    _exit(0);
  }
  if (pid > 0) sync_pid = pid;
  return pid > 0;
}

void ReapSync(void) {
  if (sync_pid != 0 && waitpid(sync_pid, NULL, WNOHANG | __WCLONE) != 0) sync_pid = 0;
}

void AwaitSync(void) {
  while (sync_pid != 0 && waitpid(sync_pid, NULL, __WCLONE) < 0 && errno == EINTR) {
  }
  sync_pid = 0;
}

pid_t SyncPid(void) { return sync_pid; }
