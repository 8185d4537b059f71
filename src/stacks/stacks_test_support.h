// Small jobs in which something hangs, for the tests.
#pragma once

#include <string>
#include <vector>

#include "stacks/capture.h"

namespace aimaster::stacks {

inline Frame Python(std::string function, std::string file, uint32_t line) {
  return {.function = std::move(function), .file = std::move(file), .line = line, .language = Language::kPython};
}
inline Frame Native(std::string function, std::string file = "/usr/lib/libc.so.6") {
  return {.function = std::move(function), .file = std::move(file), .line = 0, .language = Language::kNative};
}

inline const Frame kModule = Python("<module>", "/home/me/train.py", 80);

inline std::vector<Frame> InAllReduce() {
  return {kModule, Python("step", "/home/me/train.py", 60),
          Python("all_reduce", "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", 2221),
          Native("pthread_cond_wait")};
}
inline std::vector<Frame> InLoad() {
  return {kModule, Python("load_batch", "/home/me/train.py", 41), Native("clock_nanosleep")};
}
inline std::vector<Frame> InPool() {
  return {Python("run", "/usr/lib/python3.11/threading.py", 975),
          Python("_worker", "/usr/lib/python3.11/concurrent/futures/thread.py", 81), Native("sem_wait")};
}

inline Thread MainThread(std::vector<Frame> frames) { return {.name = "MainThread", .frames = std::move(frames)}; }
inline Thread Background(std::vector<Frame> frames, std::string name = "pool") {
  return {.id = 9, .name = std::move(name), .is_waiting = true, .frames = std::move(frames)};
}

inline Origin OfRank(uint32_t rank) {
  return {.node = "node-" + std::to_string(rank / 2),
          .instance = "job-worker-" + std::to_string(rank),
          .rank = rank,
          .pid = 1000 + rank,
          .is_child = false,
          .command = "python3",
          .tool = "py-spy",
          .trouble = {}};
}

// One rank loads for ever, and the others wait for it.
inline Capture OneOf(uint32_t ranks, uint32_t culprit) {
  CaptureBuilder builder;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Thread> threads{MainThread(rank == culprit ? InLoad() : InAllReduce()), Background(InPool())};
    // The one that hosts the store has a thread that nobody else has.
    if (rank == 0)
      threads.push_back(
          Background({Native("TCPStoreMasterDaemon::run", "/opt/torch/libtorch_cpu.so"), Native("poll")}, "store"));
    builder.Add(OfRank(rank), threads);
  }
  return builder.Take();
}

}  // namespace aimaster::stacks
