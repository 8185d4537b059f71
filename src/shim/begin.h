// Everything between the exec of the shim and its first rank: may this attempt be started, once, and can its end be
// kept?
#ifndef AIMASTER_SHIM_BEGIN_H_
#define AIMASTER_SHIM_BEGIN_H_

#include "shim/attempt.h"

enum Begin { kBeginGo, kBeginOver };

// kBeginOver: exit with `code`; nothing was started.
enum Begin BeginAttempt(struct Attempt* attempt, const char* path, int* code);

#endif  // AIMASTER_SHIM_BEGIN_H_
