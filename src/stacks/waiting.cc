#include "stacks/waiting.h"

#include <algorithm>
#include <array>
#include <string>

namespace aimaster::stacks {
namespace {

bool Has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

template <size_t kCount>
bool IsAmong(std::string_view text, const std::array<std::string_view, kCount>& words) {
  return std::ranges::find(words, text) != words.end();
}

// Names of functions, without what a linker puts behind them: "clock_nanosleep@@GLIBC_2.17".
std::string_view Plain(std::string_view function) { return function.substr(0, function.find('@')); }

bool IsCollective(const Frame& frame) {
  static constexpr std::array<std::string_view, 19> kNames = {"all_reduce",
                                                              "allreduce",
                                                              "all_gather",
                                                              "allgather",
                                                              "all_gather_into_tensor",
                                                              "reduce_scatter",
                                                              "reduce",
                                                              "broadcast",
                                                              "barrier",
                                                              "reduce_scatter_tensor",
                                                              "all_to_all",
                                                              "alltoall",
                                                              "gather",
                                                              "scatter",
                                                              "all_gather_object",
                                                              "gather_object",
                                                              "broadcast_object_list",
                                                              "monitored_barrier",
                                                              "all_to_all_single"};
  static constexpr std::array<std::string_view, 6> kParts = {"c10d::",  "gloo::",  "ncclGroup",
                                                             "ncclAll", "horovod", "ProcessGroup"};
  const std::string_view function = Plain(frame.function);
  if (frame.language == Language::kPython) {
    return Has(frame.file, "torch/distributed/") || Has(frame.file, "horovod/") || Has(frame.file, "mpi4py/") ||
           (Has(frame.file, "distributed") && IsAmong(function, kNames));
  }
  if (function.starts_with("MPI_") || function.starts_with("PMPI_") || function.starts_with("MPIR_")) return true;
  return std::ranges::any_of(kParts, [&](std::string_view part) { return Has(function, part); });
}

bool IsLoaderWait(const Frame& frame) {
  return frame.language == Language::kPython && frame.file.ends_with("dataloader.py") &&
         (frame.function == "_get_data" || frame.function == "_try_get_data");
}

// Whose loop asks for work; it does, when all within it is the waiting itself.
bool IsWorkLoop(const Frame& frame) {
  if (frame.language != Language::kPython) return false;
  if (frame.function == "_worker_loop") return Has(frame.file, "_utils/worker.py");
  if (frame.function == "_pin_memory_loop" || frame.function == "do_one_step") return Has(frame.file, "pin_memory.py");
  if (frame.function == "_worker") return frame.file.ends_with("futures/thread.py");
  return frame.function == "worker" && frame.file.ends_with("multiprocessing/pool.py");
}

bool IsWaitingCode(const Frame& frame) {
  if (frame.language != Language::kPython) return true;
  static constexpr std::array<std::string_view, 9> kFiles = {"queues.py",     "queue.py",     "connection.py",
                                                             "selectors.py",  "threading.py", "synchronize.py",
                                                             "popen_fork.py", "worker.py",    "pin_memory.py"};
  return IsAmong(LastPart(frame.file), kFiles) || frame.file.ends_with("futures/thread.py");
}

bool IsChildWait(const Frame& innermost) {
  static constexpr std::array<std::string_view, 4> kCalls = {"wait4", "__wait4", "waitpid", "waitid"};
  if (innermost.language == Language::kPython) {
    const std::string_view file = LastPart(innermost.file);
    return (file == "subprocess.py" && Has(innermost.function, "wait")) ||
           (file == "popen_fork.py" && (innermost.function == "poll" || innermost.function == "wait"));
  }
  return IsAmong(Plain(innermost.function), kCalls);
}

bool IsLibrary(const Frame& frame) {
  if (frame.language == Language::kPython) {
    return frame.file.starts_with('<') || Has(frame.file, "site-packages/") || Has(frame.file, "dist-packages/") ||
           Has(frame.file, "/lib/python3") || Has(frame.file, "/lib64/python3");
  }
  return frame.file.empty() || frame.file.starts_with("/lib") || frame.file.starts_with("/usr/") ||
         frame.file.starts_with("./") || frame.file.starts_with("../") || frame.file == "???" ||
         LastPart(frame.file).starts_with("lib");
}

// The C library and its kin: every thread that waits is there.
bool IsOfTheSystem(std::string_view file) {
  static constexpr std::array<std::string_view, 6> kLibraries = {"libc.",    "libc-",   "libpthread",
                                                                 "ld-linux", "ld-musl", "linux-vdso"};
  if (file.starts_with("../") || file.starts_with("./")) return true;  // their sources, as they were built
  const std::string_view name = LastPart(file);
  return std::ranges::any_of(kLibraries, [name](std::string_view library) { return name.starts_with(library); });
}

}  // namespace

std::string_view LastPart(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string Describe(const Frame& frame) {
  if (frame.file.empty()) return frame.function;
  const std::string line = frame.line == 0 ? "" : ":" + std::to_string(frame.line);
  return frame.function + " (" + std::string(LastPart(frame.file)) + line + ")";
}

std::string_view Describe(Waits waits) {
  switch (waits) {
    case Waits::kNot:
      return "";
    case Waits::kWork:
      return "waits for work";
    case Waits::kChild:
      return "waits for a process that it started";
    case Waits::kLoader:
      return "waits for its data loader";
    case Waits::kPeers:
      return "waits for other ranks";
    case Waits::kKernel:
      return "does not run";
  }
  return "";
}

Waits WhatItWaitsFor(std::span<const Frame> stack) {
  if (stack.empty()) return Waits::kNot;
  if (stack.back().language == Language::kKernel) return Waits::kKernel;
  const auto loop = std::ranges::find_if(stack, IsWorkLoop);
  if (loop != stack.end()) {
    return std::all_of(loop, stack.end(), IsWaitingCode) ? Waits::kWork : Waits::kNot;
  }
  if (std::ranges::any_of(stack, IsLoaderWait)) return Waits::kLoader;
  if (std::ranges::any_of(stack, IsCollective)) return Waits::kPeers;
  const auto python = std::ranges::find(stack.rbegin(), stack.rend(), Language::kPython, &Frame::language);
  if (IsChildWait(stack.back()) || (python != stack.rend() && IsChildWait(*python))) return Waits::kChild;
  return Waits::kNot;
}

bool IsAtRest(std::span<const Frame> stack) {
  static constexpr std::array<std::string_view, 22> kCalls = {"poll",
                                                              "__poll",
                                                              "epoll_wait",
                                                              "select",
                                                              "__select",
                                                              "pselect",
                                                              "accept",
                                                              "accept4",
                                                              "nanosleep",
                                                              "futex_wait",
                                                              "clock_nanosleep",
                                                              "sem_wait",
                                                              "pause",
                                                              "sigwait",
                                                              "__futex_abstimed_wait_common",
                                                              "read",
                                                              "recv",
                                                              "recvmsg",
                                                              "recvfrom",
                                                              "pthread_cond_wait",
                                                              "pthread_cond_timedwait",
                                                              "ppoll"};
  if (stack.empty()) return true;
  const Frame& innermost = stack.back();
  if (innermost.language == Language::kNative) return IsAmong(Plain(innermost.function), kCalls);
  if (innermost.language == Language::kKernel) return true;
  return IsWaitingCode(innermost);
}

const Frame* PlaceOf(std::span<const Frame> stack) {
  if (stack.empty()) return nullptr;
  const auto innermost = [&](auto is_right) -> const Frame* {
    const auto found = std::find_if(stack.rbegin(), stack.rend(), is_right);
    return found == stack.rend() ? nullptr : &*found;
  };
  const auto is_python = [](const Frame& frame) { return frame.language == Language::kPython; };
  const Frame* place = innermost([&](const Frame& frame) { return is_python(frame) && !IsLibrary(frame); });
  if (place == nullptr) place = innermost(is_python);
  if (place == nullptr) {
    place = innermost([](const Frame& frame) {
      return frame.language == Language::kNative && frame.function != "?" && !IsLibrary(frame);
    });
  }
  if (place == nullptr) {
    place = innermost([](const Frame& frame) { return frame.function != "?" && !IsOfTheSystem(frame.file); });
  }
  if (place == nullptr) place = innermost([](const Frame& frame) { return frame.function != "?"; });
  return place != nullptr ? place : &stack.back();
}

}  // namespace aimaster::stacks
