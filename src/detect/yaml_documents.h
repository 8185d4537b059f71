// HasManyDocuments: whether a YAML text is more than the one document that a file of ours is.
#pragma once

#include <string_view>

namespace aimaster {

// Throws what yaml-cpp throws where the text is no YAML. YAML::LoadAll would tell as well, but takes some texts, a lone
// comma say, for documents without end.
bool HasManyDocuments(std::string_view text);

}  // namespace aimaster
