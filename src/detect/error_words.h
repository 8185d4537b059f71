// Words of error in general: where no rule knows a line, does it at least sound as if something had gone wrong.
#pragma once

#include <string_view>

namespace aimaster {

bool SoundsLikeAnError(std::string_view line);

}  // namespace aimaster
