// The respawner: keeps one command running, for a master that has to survive its own crash and for an agent whose death
// must not end a Slurm step or a pod.
//
// It is as small as it is because it must never be the one that dies. systemd and s6 do the same and were considered;
// an ordinary user on somebody's cluster has neither.
//
//   aimaster-shim --supervise [--name N] [--run-dir DIR] [--backoff-max-ms N] -- CMD ARGS…
//
// The command's end      what follows
//   exit 0               we exit 0, and leave alone whatever else it started
//   exit 64…78           permanent (a usage or configuration error, see sysexits.h): we exit with the same code
//   cannot be executed   at the first start: we exit 127 or 126; later (an upgrade under way, say) it counts as a death
//   exit 79              the world is in its way (a full disk, say): as below, for as long as it takes; likewise when
//                        there is no room for a process
//   anything else        it is started again: at once, then after 0.1, 0.2, 0.5, 1, 2, 5, 5, … s; a life of 60 s resets
//                        that; ten deaths within 60 s are a crash loop: we exit 70
//
// TERM, INT and QUIT go on to the command, whose end is then ours, with its code (128+n for signal n). USR1 and USR2 go
// on to it. HUP is ignored. DIR/supervisor.json says who runs: {"pid","start_ticks","child_pid","starts"}.
#ifndef AIMASTER_SHIM_SUPERVISE_H_
#define AIMASTER_SHIM_SUPERVISE_H_

// `argv` begins behind --supervise and ends with NULL. Returns the exit code.
int RunSupervisor(char** argv);

#endif  // AIMASTER_SHIM_SUPERVISE_H_
