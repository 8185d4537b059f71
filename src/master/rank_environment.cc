#include "master/rank_environment.h"

#include <algorithm>
#include <iterator>

#include "core/roles.h"
#include "engine/layout.h"
#include "master/framework_environment.h"

namespace aimaster {
namespace {

// Device ids of the slice that the n-th of `parts` nodes gets; the first nodes get one more where it doesn't divide.
std::string DeviceSlice(const std::vector<std::string>& devices, size_t part, size_t parts) {
  const size_t first = devices.size() * part / parts, last = devices.size() * (part + 1) / parts;
  std::string slice;
  for (size_t i = first; i < last; ++i) slice += (i == first ? "" : ",") + devices[i];
  return slice;
}

// Which of the pretend nodes this is, for sharing out devices: fixed, so that a node keeps its devices whoever joins.
void AddDevices(const JobState& job, NodeIndex node, Environment& environment) {
  if (job.spec.devices.empty()) return;
  const std::string slice = DeviceSlice(job.spec.devices, Value(node) % std::max(1u, job.spec.local_nodes),
                                        std::max(1u, job.spec.local_nodes));
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"}) {
    environment[name] = slice;
  }
}

// Ranks are numbered role by role, in the order in which the roles are given.
struct RanksOfRole {
  uint32_t first = 0, count = 0;
};

RanksOfRole FindRanks(const JobSpec& spec, Role role) {
  RanksOfRole ranks;
  for (const RoleSpec& given : spec.roles) {
    const uint32_t count = given.count * given.ranks_per_instance;
    if (given.role == role) {
      ranks.count += count;
    } else if (ranks.count == 0) {
      ranks.first += count;
    }
  }
  return ranks;
}

}  // namespace

Environment BaseEnvironment(const JobSpec& spec) {
  Environment environment = spec.environment;
  environment.try_emplace("PYTHONFAULTHANDLER", "1");
  // "0" counts as set for Python only when it is a number it knows; the training service sets it, and means nothing by
  // it.
  std::string& unbuffered = environment["PYTHONUNBUFFERED"];
  if (unbuffered.empty() || unbuffered == "0") unbuffered = "1";
  const bool share_nodes = IsMpi(spec) ? spec.mpi_slots > 1 : WorldSize(spec) > SlotCount(spec);
  if (share_nodes) environment.try_emplace("OMP_NUM_THREADS", "1");
  return environment;
}

Environment RankEnvironment(const JobState& job, const NodePlace& place, const StartInstance& start, uint32_t local,
                            const std::filesystem::path& attempt_directory) {
  const InstanceState& instance = job.instances[Value(start.instance)];
  const RanksOfRole of_role = FindRanks(job.spec, instance.role);
  const uint32_t rank = Value(instance.first_rank) + local;
  const std::string node_rank = std::to_string(place.node_rank), nodes = std::to_string(place.node_count);
  const std::string local_world = std::to_string(place.local_world_size);
  Environment environment{
      {"RANK", std::to_string(rank)},
      {"LOCAL_RANK", std::to_string(place.first_local_rank + local)},
      {"WORLD_SIZE", std::to_string(job.instance_of_rank.size())},
      {"LOCAL_WORLD_SIZE", local_world},
      {"GROUP_RANK", node_rank},
      {"GROUP_WORLD_SIZE", nodes},
      {"ROLE_RANK", std::to_string(rank - of_role.first)},
      {"ROLE_NAME", std::string(Name(instance.role))},
      {"ROLE_WORLD_SIZE", std::to_string(of_role.count)},
      {"NODE_RANK", node_rank},
      {"NNODES", nodes},
      {"NPROC_PER_NODE", local_world},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(start.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(job.spec.fault_tolerance.max_num_of_job_restart)},
      {"TORCHELASTIC_RUN_ID", job.spec.id.text()},
      {"TORCHELASTIC_ERROR_FILE", attempt_directory / ("rank" + std::to_string(local) + ".error.json")},
      {"AIMASTER_JOB_ID", job.spec.id.text()},
      {"AIMASTER_INSTANCE", instance.name},
      {"AIMASTER_NODE", job.nodes.at(start.node).name},
      {"AIMASTER_ROUND", std::to_string(Value(start.round))},
      {"AIMASTER_ATTEMPT", std::to_string(Value(start.attempt))},
  };
  if (MeetAtMaster(job.spec)) {
    environment["MASTER_ADDR"] = start.master_address;
    environment["MASTER_PORT"] = std::to_string(start.master_port);
  }
  environment.merge(FrameworkEnvironment(job, instance, rank));
  AddDevices(job, start.node, environment);
  return environment;
}

}  // namespace aimaster
