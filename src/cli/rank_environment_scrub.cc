#include "cli/rank_environment_scrub.h"

#include <algorithm>
#include <array>

#include "core/quote.h"

namespace aimaster::cli {
namespace {

constexpr std::array<std::string_view, 67> kNames = {
    // torch.distributed, torchrun, and what AIMaster sets itself
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE", "NODE_RANK",
    "NNODES", "NPROC_PER_NODE", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG", "AIMASTER_JOB_ID", "AIMASTER_INSTANCE",
    "AIMASTER_NODE", "AIMASTER_ROUND", "AIMASTER_ATTEMPT", "AIMASTER_SOCKET", "AIMASTER_SHARD_INDEX",
    "AIMASTER_SHARD_COUNT", "ElASTICBATCH_CONFIG",
    // MPI libraries
    "OMPI_UNIVERSE_SIZE", "OMPI_APP_CTX_NUM_PROCS", "OMPI_FIRST_RANKS", "OMPI_NUM_APP_CTX", "OMPI_FILE_LOCATION",
    "OMPI_MCA_ess", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_ess_base_vpid", "OMPI_MCA_orte_ess_num_procs",
    "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_orte_local_daemon_uri", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "MPIRUN_RANK",
    "MPIRUN_NPROCS",
    // what an MPI job sets for its own mpirun
    "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_fork_agent", "OMPI_MCA_plm", "OMPI_MCA_plm_rsh_agent",
    "OMPI_MCA_plm_rsh_no_tree_spawn", "OMPI_MCA_orte_leave_session_attached", "HYDRA_HOST_FILE", "HYDRA_LAUNCHER",
    "HYDRA_LAUNCHER_EXEC", "HYDRA_LAUNCHER_AUTOFORK",
    // a Slurm step; what describes the allocation (SLURM_JOB_ID, SLURM_JOB_NODELIST) stays
    "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE", "SLURM_TASK_PID", "SLURM_GTIDS", "SLURM_STEPID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_NUM_NODES", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_LAUNCHER_PORT",
    "SLURM_SRUN_COMM_HOST", "SLURM_SRUN_COMM_PORT", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_DISTRIBUTION"};

constexpr std::array<std::string_view, 10> kPrefixes = {"TORCHELASTIC_", "GROUP_",         "PMI_",       "PMI2_",
                                                        "PMIX_",         "AIMASTER_MPI_",  "OMPI_COMM_", "PRTE_",
                                                        "HYDI_",         "MV2_COMM_WORLD_"};

}  // namespace

bool IsRankBearing(std::string_view name) {
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Result<std::map<std::string, std::string>> JobEnvironment(std::span<const char* const> inherited, bool keep_all,
                                                          std::span<const std::string> given) {
  std::map<std::string, std::string> environment;
  for (const std::string_view variable : inherited) {
    const size_t equals = variable.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    const std::string_view name = variable.substr(0, equals);
    if (keep_all || !IsRankBearing(name)) environment.try_emplace(std::string(name), variable.substr(equals + 1));
  }
  for (const std::string& variable : given) {
    const size_t equals = variable.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Fail(ErrorKind::kUsage, "--env is " + Quoted(variable) + "; it is written --env NAME=VALUE");
    }
    environment.insert_or_assign(variable.substr(0, equals), variable.substr(equals + 1));
  }
  return environment;
}

}  // namespace aimaster::cli
