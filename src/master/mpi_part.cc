#include "master/mpi_part.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/roles.h"

namespace aimaster {
namespace {

struct Host {
  std::string address;
  uint32_t slots = 0;
};

// In the order of the workers, so that ranks keep their hosts over restarts.
std::vector<Host> HostsOfWorkers(const JobState& job) {
  std::vector<Host> hosts;
  for (const InstanceState& instance : job.instances) {
    if (instance.role != Role::kWorker) continue;
    const std::string& address = job.nodes.at(instance.node).address;
    auto host = std::ranges::find(hosts, address, &Host::address);
    if (host == hosts.end()) host = hosts.insert(hosts.end(), Host{.address = address});
    host->slots += std::max(1u, job.spec.mpi_slots);
  }
  return hosts;
}

// Several workers of one host are one station.
bool IsFirstOnHost(const JobState& job, InstanceIndex index) {
  const std::string& address = job.nodes.at(job.instances[Value(index)].node).address;
  const auto before = std::span(job.instances).first(Value(index));
  return std::ranges::none_of(before, [&](const InstanceState& other) {
    return other.role == Role::kWorker && job.nodes.at(other.node).address == address;
  });
}

}  // namespace

v1::MpiPart MakeMpiPart(const JobState& job, const StartInstance& start) {
  v1::MpiPart part;
  if (!IsMpi(job.spec)) return part;
  const std::string& own_address = job.nodes.at(start.node).address;
  if (job.instances[Value(start.instance)].role != Role::kLauncher) {
    v1::MpiStation& station = *part.mutable_station();
    if (own_address != start.master_address && IsFirstOnHost(job, start.instance)) station.set_address(own_address);
    station.set_port(start.master_port);
    return part;
  }
  v1::MpiLauncher& launcher = *part.mutable_launcher();
  launcher.set_port(start.master_port);
  std::vector<Host> hosts = HostsOfWorkers(job);
  if (hosts.empty() && job.spec.mpi_slots > 0) hosts.push_back({.address = own_address, .slots = job.spec.mpi_slots});
  for (const Host& host : hosts) {
    v1::MpiHost& added = *launcher.add_hosts();
    added.set_address(host.address);
    added.set_slots(host.slots);
    added.set_is_local(host.address == own_address);
  }
  return part;
}

void AdaptToMpi(const JobSpec& spec, Environment& environment) {
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
                           "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE", "NODE_RANK", "NNODES", "NPROC_PER_NODE"}) {
    environment.erase(name);
  }
  std::string devices;
  for (const std::string& device : spec.devices) devices += (devices.empty() ? "" : ",") + device;
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"}) {
    if (!devices.empty()) environment[name] = devices;
  }
}

}  // namespace aimaster
