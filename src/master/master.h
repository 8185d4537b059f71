// Master: the loop that joins journal, engine, agents and nodes for one job. It decides nothing and remembers nothing:
// what it knows is in the engine, and what the engine knows is in the journal.
//
//   agents, people ──▶ Feed(event) ──▶ engine.Step ──▶ journal.Append ──▶ actions, acknowledgements
//                                                        (one commit for all that arrived together)
//
// Acting before the append is durable was rejected, however short the gap: a master that crashes inside it would have
// started instances that its successor knows nothing of.
#pragma once

#include <filesystem>

namespace aimaster {

// Runs the master of the job in this directory until the job has ended; the exit status of its process: 0 when the job
// has ended (however it ended), 64 … 78 when starting again can't help, anything else when it may.
int RunMaster(const std::filesystem::path& job_directory);

}  // namespace aimaster
