// NCCL as its profiler plugin sees it, for tests: it loads the library as each release does, and hands it events as the
// bytes that this release would. Nothing here knows how the plugin reads them; the layouts are written down once more.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "c4d/record_harness.h"

namespace aimaster::c4d {

enum NcclEventBit {
  kGroupEvent = 1,
  kCollEvent = 2,
  kP2pEvent = 4,
  kProxyOpEvent = 8,
  kKernelChEvent = 64,
  kGroupApiEvent = 256,
  kCollApiEvent = 512,
  kP2pApiEvent = 1024,
};

// A descriptor, of which all that is not set is rubbish.
class NcclDescriptor {
 public:
  NcclDescriptor(int version, uint64_t type, void* parent, int rank) {
    bytes_.fill(std::byte{0xaa});
    if (version >= 5) {
      Set<uint64_t>(0, type);
    } else {
      Set<uint8_t>(0, static_cast<uint8_t>(type));
    }
    Set<void*>(8, parent);
    Set<int>(16, rank);
  }
  template <typename T>
  void Set(size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void* bytes() { return bytes_.data(); }

 private:
  alignas(8) std::array<std::byte, 136> bytes_;
};

struct NcclOperation {
  const char* function = "AllReduce";
  int peer = 0;  // or root
  int channels = 2;
  size_t count = 1024;
  const char* type = "ncclBfloat16";
  void* handle = nullptr;
  std::vector<void*> begun;  // of each channel

  bool is_p2p() const { return std::strcmp(function, "Send") == 0 || std::strcmp(function, "Recv") == 0; }
};

struct NcclCommunicator {
  void* context = nullptr;
  uint64_t hash = 0;
  std::string name;
  int ranks = 0, rank = 0;
};

class NcclHost {
 public:
  // A release whose newest version is this.
  explicit NcclHost(int newest) { Load(newest); }
  NcclHost(const NcclHost&) = delete;
  NcclHost& operator=(const NcclHost&) = delete;
  ~NcclHost() { dlclose(library_); }

  static std::string Path() {
    const char* programs = std::getenv("AIMASTER_BIN");
    return std::string(programs == nullptr ? "build/bin" : programs) + "/libnccl-profiler-aimaster.so";
  }

  int version() const { return version_; }
  int mask() const { return mask_; }
  bool tells_channels() const { return (mask_ & kKernelChEvent) != 0; }

  NcclCommunicator Init(uint64_t hash, const std::string& name, int ranks, int rank) {
    NcclCommunicator made{.hash = hash, .name = name, .ranks = ranks, .rank = rank};
    int result = -1;
    if (version_ <= 3) {
      result = Call<int(void**, int*)>(1)(&made.context, &mask_);
    } else if (version_ == 4) {
      using Init = int(void**, int*, const char*, uint64_t, int, int, int, void*);
      result = Call<Init>(1)(&made.context, &mask_, name.c_str(), hash, 1, ranks, rank, nullptr);
    } else {
      using Init = int(void**, uint64_t, int*, const char*, int, int, int, void*);
      result = Call<Init>(1)(&made.context, hash, &mask_, name.c_str(), 1, ranks, rank, nullptr);
    }
    CHECK(result == 0);
    return made;
  }
  void Finalize(NcclCommunicator& communicator) {
    CHECK(Call<int(void*)>(5)(communicator.context) == 0);
    communicator.context = nullptr;
  }

  void* Start(void* context, NcclDescriptor& descriptor) {
    void* handle = this;  // rubbish, to be overwritten
    CHECK(Call<int(void*, void**, void*)>(2)(context, &handle, descriptor.bytes()) == 0);
    CHECK(handle != this);
    return handle;
  }
  // For what was given no handle, NCCL does not call.
  void Stop(void* handle) {
    if (handle != nullptr) CHECK(Call<int(void*)>(3)(handle) == 0);
  }
  void Record(void* handle, int state) {
    uint64_t argument = 0;
    if (handle != nullptr) CHECK(Call<int(void*, int, void*)>(4)(handle, state, &argument) == 0);
  }

  // A plan, as the thread does it that launches.
  void Launch(const NcclCommunicator& communicator, const std::vector<NcclOperation*>& operations) {
    if (mask_ == 0) return;
    void *group_api = nullptr, *api = nullptr;
    const auto start = [&](uint64_t type, void* parent) {
      NcclDescriptor event(version_, type, parent, communicator.rank);
      return Start(communicator.context, event);
    };
    if (version_ >= 5) {
      group_api = start(kGroupApiEvent, nullptr);
      for (const NcclOperation* operation : operations) {
        api = start(operation->is_p2p() ? kP2pApiEvent : kCollApiEvent, group_api);
        Stop(api);
      }
    }
    void* group = start(kGroupEvent, nullptr);
    for (NcclOperation* operation : operations) {
      NcclDescriptor event = Describe(communicator, *operation, version_ >= 5 ? api : group);
      operation->handle = Start(communicator.context, event);
      operation->begun.clear();
    }
    for (NcclOperation* operation : operations) Stop(operation->handle);
    Stop(group);
    Stop(group_api);
  }

  // What the thread tells that looks at the device's counters.
  void BeginChannels(const NcclCommunicator& communicator, NcclOperation& operation, int channels) {
    if (!tells_channels()) return;
    for (int i = 0; i < channels; ++i) {
      operation.begun.push_back(BeginChannel(communicator.context, operation.handle));
    }
  }
  void* BeginChannel(void* context, void* parent) {
    NcclDescriptor event(version_, kKernelChEvent, parent, 0);
    event.Set<uint8_t>(24, 0);
    return Start(context, event);
  }
  void EndChannels(NcclOperation& operation) {
    for (void* channel : operation.begun) {
      Record(channel, 22);
      Stop(channel);
    }
    operation.begun.clear();
  }
  void Run(const NcclCommunicator& communicator, NcclOperation operation) {
    Launch(communicator, {&operation});
    BeginChannels(communicator, operation, operation.channels);
    EndChannels(operation);
  }

 private:
  void Load(int newest) {
    library_ = dlopen(Path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) std::fprintf(stderr, "%s\n", dlerror());
    CHECK(library_ != nullptr);
    for (version_ = newest; version_ >= 1; --version_) {
      table_ = static_cast<void**>(dlsym(library_, ("ncclProfiler_v" + std::to_string(version_)).c_str()));
      if (table_ != nullptr) break;
    }
    CHECK(table_ != nullptr && table_[0] != nullptr);
  }

  // By its place in the table.
  template <typename F>
  F* Call(size_t place) const {
    return reinterpret_cast<F*>(table_[place]);
  }

  NcclDescriptor Describe(const NcclCommunicator& communicator, const NcclOperation& operation, void* parent) const {
    const bool is_p2p = operation.is_p2p();
    NcclDescriptor event(version_, is_p2p ? kP2pEvent : kCollEvent, parent, communicator.rank);
    size_t at = 24;
    if (version_ <= 3) {
      event.Set(24, communicator.hash == 0 ? nullptr : communicator.name.c_str());
      event.Set(32, communicator.hash);
      at = 40;
    }
    if (!is_p2p) {
      event.Set<uint64_t>(at, 0);  // a sequence number that stands still, as of graphs
      at += 8;
    }
    event.Set(at, operation.function);
    if (is_p2p) {
      event.Set(at + 16, operation.type);
      event.Set(at + 24, operation.count);
      event.Set(at + 32, operation.peer);
      if (version_ >= 4) event.Set(at + 36, static_cast<uint8_t>(operation.channels + 1));  // more than are heard of
      return event;
    }
    event.Set(at + 24, operation.count);
    event.Set(at + 32, operation.peer);
    event.Set(at + 40, operation.type);
    const size_t channels = version_ == 2 ? 104 : version_ == 3 ? 96 : 80;
    event.Set(channels, static_cast<uint8_t>(version_ <= 3 ? 32 : operation.channels));
    return event;
  }

  void* library_ = nullptr;
  void** table_ = nullptr;
  int version_ = 0;
  int mask_ = 0;
};

// A process that plays a rank of a job, and then stands still until it is no longer needed.
class NcclProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  NcclProcess(int newest, const Environment& environment, const std::function<void(NcclHost&)>& play) {
    Begin(environment, [&] {
      NcclHost host(newest);
      play(host);
      End(testing::Test::HasFailure() ? 'f' : 'k');
    });
  }
  // It plays at being NCCL by itself; where it returns, it ends.
  NcclProcess(const Environment& environment, const std::function<void()>& play) { Begin(environment, play); }
  NcclProcess(const NcclProcess&) = delete;
  NcclProcess& operator=(const NcclProcess&) = delete;
  ~NcclProcess() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    close(from_child_);
    std::filesystem::remove_all(folder_);
  }

  // Until it has played; false: it did not come to the end, or something was not as expected.
  bool HasPlayed() {
    char said = 0;
    return read(from_child_, &said, 1) == 1 && said == 'k';
  }
  // Until it has ended by itself.
  bool HasEnded() {
    char none = 0;
    return read(from_child_, &none, 1) == 0;
  }
  std::vector<std::filesystem::path> Files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) files.push_back(entry.path());
    return files;
  }
  Record Read(Duration later = {}) const {
    const std::vector<std::filesystem::path> files = Files();
    CHECK(files.size() == 1);
    Result<Record> record = ReadRecord(CopyOf(files[0]), NowMonotonic() + later);
    CHECK(record.has_value());
    return std::move(*record);
  }

 private:
  void Begin(const Environment& environment, const std::function<void()>& play) {
    std::string folder = std::filesystem::temp_directory_path() / "nccl-XXXXXX";
    CHECK(mkdtemp(folder.data()) != nullptr);
    folder_ = folder;
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    from_child_ = ends[0];
    std::fflush(nullptr);
    process_ = fork();
    CHECK(process_ >= 0);
    if (process_ != 0) {
      close(ends[1]);
      return;
    }
    to_parent_ = ends[1];
    for (const char* name : {"RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS"}) unsetenv(name);
    setenv(AIMASTER_RECORD_FOLDER, folder_.c_str(), 1);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    play();
    std::fflush(nullptr);
    std::exit(0);
  }

  void End(char how) {
    CHECK(write(to_parent_, &how, 1) == 1);
    for (;;) pause();
  }

  std::filesystem::path folder_;
  pid_t process_ = 0;
  int from_child_ = -1, to_parent_ = -1;
};

}  // namespace aimaster::c4d
