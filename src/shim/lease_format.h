// The document by which an agent tells the shims of its node that there is a master: `lease`, in the node's directory,
// mode 0600. The agent writes it again and again while a master leads the job; a shim that finds it old for too long
// stops its ranks, since nobody is left who could.
//
// A file was chosen because it needs nobody to be alive in the moment of reading. A signal or a pipe from the agent
// alone says nothing once the agent is stopped, and a lock ends with the agent's death, which ranks have to survive.
//
//   byte 0  ┌───────────────────┬─────────┬──────────┐
//           │ "AIMLEASE"        │ version │ size     │
//        16 ├───────────────────┼─────────┴──────────┤
//           │ renewed_ns        │ orphan_timeout_ns  │  monotonic time at which there was a master; what is in force
//        32 ├───────────────────┼────────────────────┤
//           │ boot              │ writer             │  digest of the boot id; pid of the agent
//        48 ├───────────────────┼────────────────────┤
//           │ reserved: 0       │ checksum           │  FNV-1a over bytes 0 … 55
//        64 └───────────────────┴────────────────────┘
//
// All numbers are in the machine's own order: the file never leaves its machine. It is written in place with one
// pwrite, so that a shim may keep its descriptor for ever and no room is needed on a full disk; a reader that meets a
// half-written one sees it by the checksum and looks again.
//
// State: absent or all zero → nobody has written yet; good → `renewed_ns` only grows within one boot; anything else →
// not a lease, and a reader counts from the last good one that it saw.
// Promise: version 1 never changes its meaning or its size; a later version keeps the first 16 bytes.
#ifndef AIMASTER_SHIM_LEASE_FORMAT_H_
#define AIMASTER_SHIM_LEASE_FORMAT_H_

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AIMASTER_FILE_LEASE "lease"

enum { kLeaseBytes = 64, kLeaseVersion = 1 };

struct Lease {
  char magic[8];
  uint32_t version;
  uint32_t size;
  int64_t renewed_ns;
  int64_t orphan_timeout_ns;
  uint64_t boot;
  int64_t writer;
  uint64_t reserved;
  uint64_t checksum;
};

static_assert(sizeof(struct Lease) == kLeaseBytes, "the lease has a fixed size");
static_assert(offsetof(struct Lease, renewed_ns) == 16 && offsetof(struct Lease, orphan_timeout_ns) == 24 &&
                  offsetof(struct Lease, boot) == 32 && offsetof(struct Lease, writer) == 40 &&
                  offsetof(struct Lease, reserved) == 48 && offsetof(struct Lease, checksum) == 56,
              "the lease has fixed places");

// FNV-1a.
static inline uint64_t LeaseDigest(const void* bytes, size_t size) {
  const unsigned char* at = (const unsigned char*)bytes;
  uint64_t digest = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < size; ++i) digest = (digest ^ at[i]) * UINT64_C(0x100000001b3);
  return digest;
}

// `boot_id`: the text of /proc/sys/kernel/random/boot_id, without its newline.
static inline struct Lease MakeLease(const char* boot_id, int64_t writer, int64_t renewed_ns,
                                     int64_t orphan_timeout_ns) {
  struct Lease lease;
  memset(&lease, 0, sizeof lease);
  memcpy(lease.magic, "AIMLEASE", sizeof lease.magic);
  lease.version = kLeaseVersion;
  lease.size = kLeaseBytes;
  lease.renewed_ns = renewed_ns;
  lease.orphan_timeout_ns = orphan_timeout_ns;
  lease.boot = LeaseDigest(boot_id, strlen(boot_id));
  lease.writer = writer;
  lease.checksum = LeaseDigest(&lease, offsetof(struct Lease, checksum));
  return lease;
}

// Whether it says something about this boot. One that was renewed after `now_ns` is none.
static inline bool IsGoodLease(const struct Lease* lease, const char* boot_id, int64_t now_ns) {
  return memcmp(lease->magic, "AIMLEASE", sizeof lease->magic) == 0 && lease->version == kLeaseVersion &&
         lease->size == kLeaseBytes && lease->boot == LeaseDigest(boot_id, strlen(boot_id)) && lease->renewed_ns >= 0 &&
         lease->renewed_ns <= now_ns && lease->orphan_timeout_ns > 0 &&
         lease->checksum == LeaseDigest(lease, offsetof(struct Lease, checksum));
}

#endif  // AIMASTER_SHIM_LEASE_FORMAT_H_
