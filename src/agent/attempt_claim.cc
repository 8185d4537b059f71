#include "agent/attempt_claim.h"

#include "agent/launch_file.h"
#include "agent/small_file.h"
#include "core/ids.h"
#include "shim/launch_format.h"

namespace aimaster::agent {
namespace {

Document<Claim> ReadLaunchClaim(const AttemptDirectory& directory) {
  const auto bytes = ReadWhole(directory.File(AIMASTER_FILE_LAUNCH), kLaunchMaxBytes);
  if (!bytes) return std::unexpected(WhyUnread(bytes.error()));
  const auto claim = ParseLaunchClaim(*bytes);
  if (!claim) return std::unexpected(Unread::kGarbage);
  return *claim;
}

}  // namespace

Document<Claim> FindClaim(const AttemptDirectory& directory, const std::string& instance_name, uint32_t attempt) {
  const auto fits = [&](const Document<Claim>& claim) {
    return claim && claim->instance_name == instance_name && claim->key.attempt == attempt;
  };
  Document<Claim> claim = directory.ReadClaim();
  if (fits(claim)) return claim;
  const Document<Claim> launch = ReadLaunchClaim(directory);
  if (fits(launch)) return launch;
  const auto is = [&](Unread why) { return (!claim && claim.error() == why) || (!launch && launch.error() == why); };
  if (is(Unread::kUnreadable)) return std::unexpected(Unread::kUnreadable);
  const bool both_absent = !claim && claim.error() == Unread::kAbsent && !launch && launch.error() == Unread::kAbsent;
  return std::unexpected(both_absent ? Unread::kAbsent : Unread::kGarbage);
}

Claim MakeUpClaim(const AttemptDirectory& directory, AttemptKey key, const std::string& instance_name,
                  const std::string& own_boot_id) {
  Claim claim{.key = key,
              .job_id = JobOfInstance(instance_name),
              .instance_name = instance_name,
              .boot_id = own_boot_id,
              .log_directory = directory.path(),
              .ranks = {}};
  if (const auto started = directory.ReadStarted()) {
    claim.boot_id = started->boot_id;
    for (const StartedRank& rank : started->ranks) claim.ranks.push_back(rank.rank);
  }
  return claim;
}

std::string JobOfInstance(const std::string& instance_name) {
  const auto job = JobId::Parse(std::string_view(instance_name).substr(0, instance_name.find('-')));
  return job ? job->text() : std::string();
}

}  // namespace aimaster::agent
