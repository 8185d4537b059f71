// What AIMaster tells its MPI helpers, by environment variables: none of them is set where there is nothing to say.
#pragma once

#include <cstdlib>
#include <string>

namespace aimaster::mpi {

// Empty where it is not set.
inline std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace aimaster::mpi
