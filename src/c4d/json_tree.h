// ReadJsonTree: the same data written as JSON, read the same way: what stands before a cut is kept, and every list or
// object that the cut left open is marked.
#pragma once

#include <string_view>

#include "c4d/data_tree.h"
#include "core/error.h"

namespace aimaster::c4d {

bool LooksLikeJson(std::string_view bytes);

// An error: it is beyond a limit; the message begins with what is wrong, to follow the file's name.
Result<DataTree> ReadJsonTree(std::string_view bytes);

}  // namespace aimaster::c4d
