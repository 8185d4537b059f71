#include "master/framework_environment.h"

#include <nlohmann/json.hpp>
#include <string>

#include "core/roles.h"

namespace aimaster {
namespace {

using nlohmann::json;

json Task(const InstanceState& instance) { return {{"type", Name(instance.role)}, {"index", instance.index_in_role}}; }

std::string HostAndPort(const InstanceState& instance) {
  const bool is_ipv6 = instance.address.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + instance.address + "]" : instance.address) + ":" + std::to_string(instance.port);
}

bool KnowsAllAddresses(const JobState& job) {
  return std::ranges::none_of(job.instances, [&job](const InstanceState& instance) {
    return HasAddress(job.spec, instance.role) && instance.port == 0;
  });
}

// Addresses are those of the round: who is restarted alone gets the same ones as everybody else.
std::string TfConfig(const JobState& job, const InstanceState& instance) {
  json cluster = json::object();
  for (const InstanceState& member : job.instances) {
    if (HasAddress(job.spec, member.role)) cluster[std::string(Name(member.role))].push_back(HostAndPort(member));
  }
  return json{{"cluster", cluster}, {"task", Task(instance)}, {"environment", "cloud"}}.dump();
}

}  // namespace

Environment FrameworkEnvironment(const JobState& job, const InstanceState& instance, uint32_t rank) {
  switch (job.spec.framework) {
    case Framework::kTensorFlow:
      // A job from before addresses brought its own, and goes on as it did until all of it is started anew.
      return KnowsAllAddresses(job) ? Environment{{"TF_CONFIG", TfConfig(job, instance)}} : Environment{};
    case Framework::kElasticBatch:
      return {{"AIMASTER_SHARD_INDEX", std::to_string(rank)},
              {"AIMASTER_SHARD_COUNT", std::to_string(job.instance_of_rank.size())},
              {"ElASTICBATCH_CONFIG", json{{"task", Task(instance)}, {"environment", "cloud"}}.dump()}};
    case Framework::kPyTorch:
    case Framework::kMpi:
      return {};
  }
  return {};
}

}  // namespace aimaster
