// The document of a capture: what agents send to the master, what lies in the job's directory as stacks/<number>.json,
// and what `aimaster stacks merge` takes beside the dumps of tools. The tables of capture.h, row by row:
//
//   {"version":1,"number":3,"time_ns":1700000000000000000,"reason":"…",
//    "texts":["","forward","model.py",…],
//    "frames":[[function,file,line,language],…],              language: 0 Python, 1 native, 2 kernel
//    "stacks":[[frame,…],…],                                   the outermost frame first
//    "processes":[[node,instance,rank,pid,flags,command,tool,trouble],…]   rank −1: none; flags: 1 child
//    "threads":[[process,stack,id,name,flags],…],              flags: 1 main, 2 waiting, 4 holds the GIL
//    "threads_cut":0,"processes_cut":0}
//
// The version comes first. Promise: keys are only ever added, and numbers only at the end of a row; a reader ignores
// what it doesn't know. A greater version is refused.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "stacks/capture.h"

namespace aimaster::stacks {

std::string FormatDocument(const Capture& capture);
// kVersion when a newer program wrote it, kUsage when it is no such document or points to what is not there.
Result<Capture> ParseDocument(std::string_view bytes);

// For people and their programs: groups as in groups.h, in that order, with nothing to look up elsewhere.
std::string FormatJson(const Capture& capture);

}  // namespace aimaster::stacks
