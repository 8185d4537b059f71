// JobSpec: what was submitted. It is written once, before anything starts, and never changes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/fault_tolerance_parameters.h"
#include "core/ids.h"
#include "core/status.h"
#include "core/time.h"

namespace aimaster {

// Instances of one role; all run the same command (of an MPI job the launcher alone).
struct RoleSpec {
  Role role = Role::kWorker;
  uint32_t count = 1;
  uint32_t ranks_per_instance = 1;
  bool operator==(const RoleSpec&) const = default;
};

// Puts roles in the order in which their ranks are numbered, drops those without instances, gives master and chief as
// many ranks as a worker, and sees to it that there is a worker.
void CompleteRoles(std::vector<RoleSpec>& roles);

// The roles of an MPI job: a launcher that runs the command, and `workers` hosts on which its mpirun may start ranks;
// none: the launcher's own. Ranks of MPI are mpirun's and have no number here, so each instance counts as one rank.
std::vector<RoleSpec> MpiRoles(uint32_t workers);

// Times that a cluster may need longer than we think. Every one is an option of `aimaster run`.
struct Timing {
  std::chrono::milliseconds stop_grace{10'000};         // from SIGTERM to SIGKILL
  std::chrono::milliseconds start_timeout{600'000};     // bound of the stage `ready`
  std::chrono::milliseconds node_lost_timeout{30'000};  // silence of a node until it counts as lost
  std::chrono::milliseconds orphan_timeout{600'000};    // an agent without a master stops its instances after this
  std::chrono::milliseconds collect_window{250};        // what else failed? waited for after the first failure
  std::chrono::milliseconds stack_timeout{30'000};      // for call stacks of all ranks, whatever tools do
  bool operator==(const Timing&) const = default;
};

struct JobSpec {
  JobId id;
  std::string name;
  Framework framework = Framework::kPyTorch;
  SuccessPolicy success_policy = SuccessPolicy::kAuto;
  std::vector<RoleSpec> roles;
  std::vector<std::string> command;                // argv; never through a shell
  std::map<std::string, std::string> environment;  // the whole environment of a rank before AIMaster's own variables
  std::string working_directory;                   // absolute
  std::string log_directory;                       // absolute; empty: inside the job directory
  FaultToleranceParameters fault_tolerance;
  std::vector<std::string> notes;  // parameters that were accepted without effect, for people
  Timing timing;
  uint64_t log_max_bytes = 0;  // bound of each rank output file; 0: none
  StackTool stack_tool = StackTool::kAuto;
  uint32_t local_nodes = 1;  // how many nodes this machine pretends to be
  uint32_t mpi_slots = 0;    // of an MPI job: how many ranks each host may hold; 0: mpirun counts for itself
  std::vector<std::string>
      devices;  // device ids to share out over the pretend nodes; empty: leave the environment alone
  std::string listen_address = "127.0.0.1";  // of the job's master; encrypted wherever it is not loopback
  std::string tls_certificate;               // absolute path of a PEM file; empty: the job makes a pair of its own
  std::string tls_key;                       // absolute; given when the certificate is
  Wall create_time;
  bool operator==(const JobSpec&) const = default;
};

// `<job>-<role>-<index>` of the index-th instance of a role.
std::string InstanceName(const JobId& job, Role role, uint32_t index_in_role);

}  // namespace aimaster
