// JobJson: a job as scripts read it (`--json`, later the HTTP API). Field names and types here are a promise to users,
// and independent of how the journal stores them. Times are RFC 3339 UTC with milliseconds, absent ones null.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "journal/aggregate.h"
#include "journal/goodput.h"
#include "journal/job_reader.h"

namespace aimaster {

nlohmann::json ListJson(const std::vector<ListedJob>& jobs);
nlohmann::json GetJson(const JobDirectory& directory, const JobSpec& spec, const JobSnapshot& snapshot);
nlohmann::json RecordsJson(const JobSnapshot& snapshot);
nlohmann::json AggregateJson(const std::vector<AggregatedFault>& faults);
nlohmann::json RoundsJson(const JobSnapshot& snapshot);
nlohmann::json GoodputJson(const Goodput& goodput);
nlohmann::json ExplainJson(const std::vector<Decision>& decisions);

// Where the output of one attempt lies.
std::filesystem::path AttemptDirectory(const JobDirectory& directory, const JobSpec& spec, const std::string& node,
                                       const std::string& instance, Attempt attempt);

// The file of a telling line.
std::filesystem::path FileOf(const JobDirectory& directory, const JobSpec& spec, const JobSnapshot& snapshot,
                             const TellingLine& line);

// `<job>-aimaster-0`: the master, which listings show beside the job's own instances.
std::string MasterInstanceName(const JobId& job);

}  // namespace aimaster
