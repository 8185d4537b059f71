// PeerOwner: which user's program is at the other end of a connection within this machine, as the kernel tells it.
//
// On loopback a client knows its master by nothing but a port, and the port of a master that has just died is free for
// anybody to take. Whoever took it would be shown the token, and could command the agents. Encryption there too would
// cost each start of a job a key, a handshake and the memory of both; the kernel's word costs two questions.
#pragma once

#include <sys/types.h>

#include <optional>

namespace aimaster {

// The user when it is neither ours nor root; nothing when it is, or when the kernel can't say. The socket is connected,
// over loopback.
std::optional<uid_t> ForeignOwnerOfPeer(int descriptor);

}  // namespace aimaster
