#include "core/job_spec.h"

namespace aimaster {

std::string InstanceName(const JobId& job, Role role, uint32_t index_in_role) {
  return job.text() + "-" + std::string(Name(role)) + "-" + std::to_string(index_in_role);
}

}  // namespace aimaster
