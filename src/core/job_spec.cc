#include "core/job_spec.h"

#include <algorithm>

namespace aimaster {
namespace {

// Who is connected to first comes first; those that only serve, or only look on, come last.
int Place(Role role) {
  switch (role) {
    case Role::kMaster:
    case Role::kLauncher:
      return 0;
    case Role::kChief:
      return 1;
    case Role::kWorker:
      return 2;
    case Role::kPs:
      return 3;
    case Role::kEvaluator:
    case Role::kAimaster:
      return 4;
  }
  return 4;
}

}  // namespace

void CompleteRoles(std::vector<RoleSpec>& roles) {
  std::erase_if(roles, [](const RoleSpec& role) { return role.count == 0; });
  auto worker = std::ranges::find(roles, Role::kWorker, &RoleSpec::role);
  if (worker == roles.end()) worker = roles.insert(roles.end(), RoleSpec{});
  const uint32_t ranks = worker->ranks_per_instance;
  for (RoleSpec& role : roles) {
    if (role.role == Role::kMaster || role.role == Role::kChief) role.ranks_per_instance = ranks;
  }
  std::ranges::sort(roles, {}, [](const RoleSpec& role) { return Place(role.role); });
}

std::vector<RoleSpec> MpiRoles(uint32_t workers) {
  std::vector<RoleSpec> roles{{.role = Role::kLauncher}};
  if (workers > 0) roles.push_back({.role = Role::kWorker, .count = workers});
  return roles;
}

std::string InstanceName(const JobId& job, Role role, uint32_t index_in_role) {
  return job.text() + "-" + std::string(Name(role)) + "-" + std::to_string(index_in_role);
}

}  // namespace aimaster
