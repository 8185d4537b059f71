#include "shim/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/files.h"
#include "shim/lease_format.h"
#include "shim/process.h"

enum { kReadTries = 3 };  // one may fall into the middle of a write
static const int64_t kMillisecond = 1000000;
static const int64_t kTimeoutUnknownNs = INT64_C(600) * 1000000000;

static char lease_path[kLaunchMaxPathBytes + 1];

static int OpenFile(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat status;
  if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
    close(fd);
    errno = EINVAL;
    return -1;
  }
  return fd;
}

static bool ReadLease(const struct LeaseReader* reader, int fd, int64_t now_ns, struct Lease* lease) {
  for (int i = 0; fd >= 0 && i < kReadTries; ++i) {
    const ssize_t got = pread(fd, lease, sizeof *lease, 0);
    // Renewed after `now_ns` was taken: as good as renewed at that moment.
    if (got == (ssize_t)sizeof *lease && IsGoodLease(lease, reader->boot_id, NowNs())) {
      if (lease->renewed_ns > now_ns) lease->renewed_ns = now_ns;
      return true;
    }
    if (got < 0 && errno != EINTR) return false;
    errno = EILSEQ;
  }
  return false;
}

static void Take(struct LeaseReader* reader, const struct Lease* lease) {
  reader->timeout_ns = lease->orphan_timeout_ns;
  LeaseRenewed(&reader->watch, lease->renewed_ns);
}

// Another file may stand there by now, when ours was removed and an agent made a new one.
static bool ReadAnew(struct LeaseReader* reader, int64_t now_ns, struct Lease* lease) {
  const int fd = OpenFile(reader->path);
  if (fd < 0) return false;
  if (!ReadLease(reader, fd, now_ns, lease)) {
    const int saved = errno;
    close(fd);
    errno = saved;
    return false;
  }
  if (reader->fd >= 0) close(reader->fd);
  reader->fd = fd;
  return true;
}

static void Read(struct LeaseReader* reader, int64_t now_ns) {
  const int64_t old_ns = now_ns - reader->timeout_ns / 2;
  struct Lease lease;
  bool good = ReadLease(reader, reader->fd, now_ns, &lease);
  if (good) Take(reader, &lease);
  if (!good || lease.renewed_ns < old_ns) {
    struct Lease anew;
    if (ReadAnew(reader, now_ns, &anew)) {
      Take(reader, &anew);
      good = true;
    }
  }
  if (!good && !reader->told_trouble) {
    Say("cannot read the lease %s: %s; counting from the last good one", reader->path,
        errno == EILSEQ ? "it is not a lease of this boot" : strerror(errno));
  }
  if (good && reader->told_trouble) Say("the lease %s can be read again", reader->path);
  reader->told_trouble = !good;
}

void OpenLease(struct LeaseReader* reader, const struct Launch* launch) {
  reader->fd = -1;
  reader->next_look_ns = INT64_MAX;
  if (!launch->lease) return;
  snprintf(lease_path, sizeof lease_path, "%s", launch->lease);
  reader->path = lease_path;
  ReadSmallFile("/proc/sys/kernel/random/boot_id", reader->boot_id, sizeof reader->boot_id);
  reader->boot_id[strcspn(reader->boot_id, "\n")] = '\0';
  reader->timeout_ns = launch->orphan_timeout_ms ? launch->orphan_timeout_ms * kMillisecond : kTimeoutUnknownNs;
  reader->fd = OpenFile(reader->path);
  reader->watch = BeginLeaseWatch(NowNs());
  reader->next_look_ns = 0;
}

int64_t LookAtLease(struct LeaseReader* reader, int64_t* due_ns) {
  const int64_t now_ns = NowNs();
  *due_ns = reader->next_look_ns;
  if (!reader->path || now_ns < reader->next_look_ns) return 0;
  Read(reader, now_ns);
  const int64_t pace_ns = LeasePaceNs(reader->timeout_ns);
  *due_ns = reader->next_look_ns = now_ns + pace_ns;
  const int64_t patience_ns = reader->timeout_ns + LeaseMarginNs(reader->timeout_ns);
  return LeaseHasExpired(&reader->watch, now_ns, patience_ns, pace_ns) ? now_ns - reader->watch.since_ns : 0;
}
