// Overloaded: a visitor out of lambdas, one for each alternative of a variant. The compiler refuses one that is
// missing.
#pragma once

namespace aimaster {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

}  // namespace aimaster
