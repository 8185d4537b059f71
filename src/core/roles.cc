#include "core/roles.h"

#include <algorithm>

namespace aimaster {
namespace {

bool Has(const JobSpec& spec, Role role) {
  return std::ranges::any_of(spec.roles,
                             [role](const RoleSpec& given) { return given.role == role && given.count > 0; });
}

// The role whose first instance leads the others.
Role Leader(const JobSpec& spec) {
  if (IsMpi(spec)) return Role::kLauncher;
  return Has(spec, Role::kChief) ? Role::kChief : Has(spec, Role::kMaster) ? Role::kMaster : Role::kWorker;
}

// Of a TensorFlow job with a chief and parameter servers the workers mostly are servers as well, which wait for orders
// for ever (tf.distribute.Server.join); only the chief has an end.
bool OnlyLeaderCounts(const JobSpec& spec) {
  switch (spec.success_policy) {
    case SuccessPolicy::kAuto:
      return spec.framework == Framework::kTensorFlow && Has(spec, Role::kChief) && Has(spec, Role::kPs);
    case SuccessPolicy::kAllWorkers:
      return false;
    case SuccessPolicy::kChiefWorker:
      return true;
  }
  return false;
}

bool EndsByItself(const JobSpec& spec, Role role) {
  return role != Role::kPs && role != Role::kEvaluator && !IsMpiHost(spec, role);
}

// Where nothing has an end of its own (a job of servers alone), all count.
bool Counts(const JobSpec& spec, Role role) {
  return EndsByItself(spec, role) || std::ranges::none_of(spec.roles, [&spec](const RoleSpec& given) {
           return given.count > 0 && EndsByItself(spec, given.role);
         });
}

}  // namespace

bool IsMpi(const JobSpec& spec) { return spec.framework == Framework::kMpi && Has(spec, Role::kLauncher); }

bool IsMpiHost(const JobSpec& spec, Role role) { return IsMpi(spec) && role == Role::kWorker; }

bool RestartsAlone(const JobSpec& spec, Role role) {
  if (IsMpiHost(spec, role)) return false;  // mpirun takes no host back
  return role == Role::kWorker || role == Role::kEvaluator || spec.framework == Framework::kElasticBatch;
}

bool CountsForSuccess(const JobSpec& spec, Role role, uint32_t index_in_role) {
  return OnlyLeaderCounts(spec) ? role == Leader(spec) && index_in_role == 0 : Counts(spec, role);
}

uint32_t CountingInstances(const JobSpec& spec) {
  if (OnlyLeaderCounts(spec)) return 1;
  uint32_t count = 0;
  for (const RoleSpec& role : spec.roles) count += Counts(spec, role.role) ? role.count : 0;
  return count;
}

std::string SuccessText(const JobSpec& spec) {
  if (OnlyLeaderCounts(spec))
    return "the " + std::string(Leader(spec) == Role::kWorker ? "first " : "") + std::string(Name(Leader(spec))) +
           " ended with exit code 0";
  std::string servers;
  for (const RoleSpec& role : spec.roles) {
    if (!Counts(spec, role.role)) servers += (servers.empty() ? "" : " or ") + std::string(Name(role.role));
  }
  return "every rank " + (servers.empty() ? "" : "that is no " + servers + " ") + "ended with exit code 0";
}

bool HasAddress(const JobSpec& spec, Role role) {
  return spec.framework == Framework::kTensorFlow && role != Role::kEvaluator;
}

bool MeetAtMaster(const JobSpec& spec) { return spec.framework != Framework::kElasticBatch; }

bool KeepsResults(const JobSpec& spec) { return spec.framework == Framework::kElasticBatch; }

Status CheckRoles(const JobSpec& spec) {
  for (const RoleSpec& role : spec.roles) {
    const std::string option = "--" + std::string(Name(role.role));
    if (spec.framework == Framework::kTensorFlow && role.ranks_per_instance > 1) {
      return Fail(ErrorKind::kUsage, "--nproc-per-node is " + std::to_string(role.ranks_per_instance) +
                                         ", but an instance of a TensorFlow job is one process; give --workers as many "
                                         "instead");
    }
    if (spec.framework == Framework::kElasticBatch && role.role != Role::kWorker && role.role != Role::kMaster) {
      return Fail(ErrorKind::kUsage, option +
                                         " makes no sense with --framework=elasticbatch, whose instances are "
                                         "independent of each other; give --workers");
    }
  }
  return {};
}

}  // namespace aimaster
