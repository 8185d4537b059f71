// The profiler plugin of NCCL in processes that do with it what NCCL of each release does, and what their records tell.
// No device is here: what a device would have done is told by the test.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <thread>

#include "c4d/c4d_test_support.h"
#include "c4d/nccl_harness.h"
#include "c4d/record_observation.h"

namespace aimaster::c4d {
namespace {

const RecordedCommunicator* Find(const Record& record, uint64_t id) {
  for (const RecordedCommunicator& communicator : record.communicators) {
    if (communicator.id == id && !communicator.is_retired) return &communicator;
  }
  return nullptr;
}

struct Counters {
  uint64_t issued = 0, started = 0, completed = 0, common_issued = 0, common_completed = 0;
  bool operator==(const Counters&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counters& counters) {
  return out << "issued " << counters.issued << ", started " << counters.started << ", completed " << counters.completed
             << ", messages " << counters.common_issued << ", done " << counters.common_completed;
}
Counters CountersOf(const Record& record, uint64_t id) {
  const RecordedCommunicator* communicator = Find(record, id);
  if (communicator == nullptr) return {};
  return {communicator->issued, communicator->started, communicator->completed, communicator->common_issued,
          communicator->common_completed};
}

class Nccl : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(std::filesystem::exists(NcclHost::Path())) << NcclHost::Path(); }
  static int newest() { return GetParam(); }
};
// Those that tell what the device does.
class NcclWithChannels : public Nccl {};

const NcclProcess::Environment kRankOne{{"RANK", "1"}, {"WORLD_SIZE", "4"}};

TEST_P(Nccl, FindsTheInterfaceOfItsTime) {
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    EXPECT_EQ(host.version(), newest() == 7 ? 6 : newest());
    host.Init(77, "world", 4, 1);
    const int least = kGroupEvent | kCollEvent | kP2pEvent;
    EXPECT_EQ(host.mask(), newest() == 2 ? least : least | kKernelChEvent);
  });
  EXPECT_TRUE(process.HasPlayed());
}

TEST_P(Nccl, AsksForNothingWhereNobodyListens) {
  NcclProcess process(newest(), {{AIMASTER_RECORD_FOLDER, ""}}, [](NcclHost& host) {
    NcclCommunicator world = host.Init(77, "world", 4, 1);
    EXPECT_EQ(world.context, nullptr);
    EXPECT_EQ(host.mask(), 0);
    host.Run(world, {});
    host.Finalize(world);
  });
  EXPECT_TRUE(process.HasPlayed());
  EXPECT_TRUE(process.Files().empty());
}

TEST_P(Nccl, CountsWhatIsDone) {
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator world = host.Init(77, "world", 4, 1), pair = host.Init(78, "pair", 2, 1);
    for (int i = 0; i < 3; ++i) host.Run(world, {});
    host.Run(world, {.function = "Broadcast", .peer = 2, .channels = 1, .type = "ncclInt8"});
    NcclOperation send{.function = "Send", .peer = 3}, receive{.function = "Recv", .peer = 0};
    host.Launch(world, {&send, &receive});
    for (NcclOperation* operation : {&send, &receive}) host.BeginChannels(world, *operation, 2);
    for (NcclOperation* operation : {&send, &receive}) host.EndChannels(*operation);
    host.Run(pair, {.function = "AllGather"});
  });
  ASSERT_TRUE(process.HasPlayed());
  const Record record = process.Read();
  EXPECT_EQ(record.source, RecordSource::kNccl);
  EXPECT_EQ(record.world_rank, Rank{1});
  EXPECT_EQ(record.world_size, 4u);
  EXPECT_FALSE(record.is_finished);
  EXPECT_EQ(CountersOf(record, 77), (Counters{4, 4, 4, 2, 2}));
  EXPECT_EQ(CountersOf(record, 78), (Counters{1, 1, 1, 0, 0}));
  EXPECT_TRUE(record.operations.empty());
  const RecordedCommunicator* world = Find(record, 77);
  ASSERT_NE(world, nullptr);
  EXPECT_EQ(world->name, "world");
  EXPECT_EQ(world->rank, 1u);
  EXPECT_EQ(world->is_size_told, newest() >= 4);
  EXPECT_EQ(world->size, newest() >= 4 ? 4u : 2u);
  ASSERT_EQ(record.finished.size(), 7u);
  EXPECT_EQ(record.finished[0].function, Function::kAllReduce);
  EXPECT_EQ(record.names[record.finished[0].name], "ncclAllReduce");
  EXPECT_EQ(record.finished[0].bytes, 2048u);
  // Where ends are not told, that is said.
  EXPECT_EQ(record.losses.requests, newest() == 2 ? 7u : 0u);
}

TEST_P(NcclWithChannels, ShowsWhatIsNotBegunAndWhatIsNotEnded) {
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator world = host.Init(77, "world", 4, 1);
    host.Run(world, {});
    NcclOperation in{.function = "ReduceScatter", .type = "ncclFloat32"}, before{.function = "Broadcast", .peer = 3};
    NcclOperation receive{.function = "Recv", .peer = 2, .count = 7, .type = "ncclInt64"};
    host.Launch(world, {&in});
    host.Launch(world, {&before, &receive});
    host.BeginChannels(world, in, 1);
  });
  ASSERT_TRUE(process.HasPlayed());
  const Record record = process.Read();
  EXPECT_EQ(CountersOf(record, 77), (Counters{3, 2, 1, 1, 0}));
  ASSERT_EQ(record.operations.size(), 3u);
  const RecordedOperation &in = record.operations[0], &before = record.operations[1], &receive = record.operations[2];
  EXPECT_EQ(in.function, Function::kReduceScatter);
  EXPECT_EQ(in.sequence, 2u);
  EXPECT_EQ(in.count, 1024u);
  EXPECT_EQ(in.type, "Float32");
  EXPECT_EQ(in.peer, RECORD_NONE);
  EXPECT_TRUE(in.started);
  EXPECT_EQ(before.sequence, 3u);
  EXPECT_EQ(before.peer, 3u);
  EXPECT_FALSE(before.started);
  EXPECT_EQ(receive.function, Function::kReceive);
  EXPECT_EQ(receive.peer, 2u);
  EXPECT_EQ(receive.count, 7u);
  EXPECT_EQ(receive.sequence, 1u);
  EXPECT_FALSE(receive.started);
}

// A graph's launches are told by threads of CUDA, again and again and with a number that stands still.
TEST_P(NcclWithChannels, CountsWhatAGraphLaunches) {
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator world = host.Init(77, "world", 4, 1);
    host.Run(world, {});
    for (int replay = 0; replay < 5; ++replay) {
      std::thread([&] {
        NcclOperation first, second{.function = "AllGather"};
        host.Launch(world, {&first, &second});
        std::thread([&] {
          for (NcclOperation* operation : {&first, &second}) host.BeginChannels(world, *operation, 2);
          for (NcclOperation* operation : {&second, &first}) host.EndChannels(*operation);
        }).join();
      }).join();
    }
    host.Run(world, {});
  });
  ASSERT_TRUE(process.HasPlayed());
  const Record record = process.Read();
  EXPECT_EQ(CountersOf(record, 77), (Counters{12, 12, 12, 0, 0}));
  EXPECT_TRUE(record.operations.empty());
}

// Several threads with communicators of their own and one that all use, and beside each one that looks at the device.
TEST_P(NcclWithChannels, LosesNoCountOfManyThreads) {
  constexpr int kThreads = 4, kTimes = 3000;
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator all = host.Init(70, "all", 4, 1);
    host.Run(all, {});
    std::vector<NcclCommunicator> own;
    for (int i = 0; i < kThreads; ++i) own.push_back(host.Init(71 + i, "own", 4, 1));
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int time = 0; time < kTimes; time += 100) {
          std::deque<NcclOperation> operations(100);
          for (NcclOperation& operation : operations) host.Launch(own[i], {&operation});
          host.Run(all, {});
          std::thread([&] {
            for (NcclOperation& operation : operations) host.BeginChannels(own[i], operation, 2);
            for (NcclOperation& operation : operations) host.EndChannels(operation);
          }).join();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  ASSERT_TRUE(process.HasPlayed());
  const Record record = process.Read();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(CountersOf(record, 71 + i), (Counters{kTimes, kTimes, kTimes, 0, 0}));
  const uint64_t together = 1 + kThreads * kTimes / 100;
  EXPECT_EQ(CountersOf(record, 70), (Counters{together, together, together, 0, 0}));
  EXPECT_TRUE(record.operations.empty());
  EXPECT_EQ(record.losses.torn, 0u);
}

TEST_P(NcclWithChannels, TakesWhatHasNoParentOrAForeignOne) {
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator world = host.Init(77, "world", 4, 1);
    host.Run(world, {});
    NcclOperation operation;
    host.Launch(world, {&operation});
    EXPECT_EQ(host.BeginChannel(world.context, nullptr), nullptr);
    // What nobody asked for: a step of the network on behalf of another process, with a pointer of that one.
    for (const uintptr_t pointer : {uintptr_t{0xdeadbeef}, uintptr_t{0x7f0012345678}, ~uintptr_t{0}}) {
      NcclDescriptor step(host.version(), kProxyOpEvent, reinterpret_cast<void*>(pointer), 1);
      step.Set(24, getpid() + 1);
      EXPECT_EQ(host.Start(world.context, step), nullptr);
      host.Stop(host.BeginChannel(world.context, reinterpret_cast<void*>(pointer)));
      host.Stop(reinterpret_cast<void*>(pointer));
      NcclDescriptor foreign(host.version(), kGroupEvent, nullptr, 1);
      EXPECT_EQ(host.Start(reinterpret_cast<void*>(pointer), foreign), nullptr);
    }
    NcclDescriptor unknown(host.version(), 128, nullptr, 1);
    EXPECT_EQ(host.Start(world.context, unknown), nullptr);
  });
  ASSERT_TRUE(process.HasPlayed());
  EXPECT_EQ(CountersOf(process.Read(), 77), (Counters{2, 1, 1, 0, 0}));
}

TEST_P(Nccl, GoesOnAfterItWasUnloaded) {
  NcclProcess process(newest(), kRankOne, [](NcclHost&) {
    for (int life = 0; life < 3; ++life) {
      NcclHost host(newest());
      NcclCommunicator world = host.Init(77, "world", 4, 1);
      for (int i = 0; i <= life; ++i) host.Run(world, {});
      if (life < 2) host.Finalize(world);
    }
  });
  ASSERT_TRUE(process.HasPlayed());
  const Record record = process.Read();
  EXPECT_EQ(std::ranges::count(record.communicators, true, &RecordedCommunicator::is_retired), 2);
  EXPECT_EQ(CountersOf(record, 77), (Counters{3, 3, 3, 0, 0}));
  EXPECT_FALSE(record.is_finished);
}

TEST_P(Nccl, IsFinishedWhenItHasNoCommunicatorAtItsEnd) {
  for (const bool is_orderly : {true, false}) {
    NcclProcess process(kRankOne, [&] {
      NcclHost host(newest());
      NcclCommunicator world = host.Init(77, "world", 4, 1);
      host.Run(world, {});
      if (is_orderly) host.Finalize(world);
    });
    ASSERT_TRUE(process.HasEnded());
    EXPECT_EQ(process.Read().is_finished, is_orderly);
  }
}

// A child that communicates has a record of its own, one that does not leaves its parent's alone.
TEST_P(Nccl, LeavesTheRecordOfItsParentAlone) {
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator world = host.Init(77, "world", 4, 1);
    host.Run(world, {});
    for (const bool communicates : {false, true}) {
      const pid_t child = fork();
      if (child == 0) {
        host.Run(world, {});
        if (communicates) {
          NcclCommunicator own = host.Init(78, "own", 1, 0);
          host.Run(own, {});
          host.Run(world, {});
        }
        _exit(0);
      }
      int status = -1;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
  });
  ASSERT_TRUE(process.HasPlayed());
  const std::vector<std::filesystem::path> files = process.Files();
  ASSERT_EQ(files.size(), 2u);
  std::map<size_t, int> seen;
  for (const std::filesystem::path& file : files) {
    const Record record = *ReadRecord(CopyOf(file), NowMonotonic());
    ASSERT_EQ(record.communicators.size(), 1u);
    EXPECT_EQ(record.communicators[0].issued, 1u);
    ++seen[record.communicators[0].id];
  }
  EXPECT_EQ(seen, (std::map<size_t, int>{{77, 1}, {78, 1}}));
}

// A communicator is given up in the midst of something: that holds nobody up any more.
TEST_P(NcclWithChannels, ForgetsWhatIsGivenUp) {
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator world = host.Init(77, "world", 4, 1);
    host.Run(world, {});
    NcclOperation stuck, before;
    host.Launch(world, {&stuck});
    host.BeginChannels(world, stuck, 2);
    host.Launch(world, {&before});
    host.Finalize(world);
    host.EndChannels(stuck);  // late
    NcclCommunicator next = host.Init(78, "next", 4, 1);
    host.BeginChannels(next, before, 1);
    host.Run(next, {});
  });
  ASSERT_TRUE(process.HasPlayed());
  const Record record = process.Read();
  EXPECT_TRUE(record.operations.empty());
  EXPECT_EQ(record.losses.requests, 2u);
  EXPECT_EQ(record.communicators[0].completed, 3u);
  EXPECT_EQ(CountersOf(record, 78), (Counters{1, 1, 1, 0, 0}));
}

// Collectives by copy engines or symmetric kernels: the device never tells of them.
TEST_P(NcclWithChannels, KnowsThatWhatIsNeverHeardOfHasEnded) {
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator mixed = host.Init(77, "mixed", 4, 1), silent = host.Init(78, "silent", 4, 1);
    std::deque<NcclOperation> operations(5300);
    for (int i = 0; i < 300; ++i) host.Launch(mixed, {&operations[i]});
    host.Run(mixed, {});
    for (int i = 300; i < 5300; ++i) host.Launch(silent, {&operations[i]});
  });
  ASSERT_TRUE(process.HasPlayed());
  const Record record = process.Read();
  EXPECT_EQ(CountersOf(record, 77), (Counters{301, 301, 301, 0, 0}));
  // More than a device can have queued is not outstanding, and does not take the room of others.
  const Counters silent = CountersOf(record, 78);
  EXPECT_EQ(silent.issued, 5000u);
  EXPECT_EQ(silent.started, silent.completed);
  EXPECT_GE(silent.completed, 5000u - 1024u);
  EXPECT_LT(silent.completed, 5000u - 900u);
  EXPECT_LE(record.operations.size(), 128u);
}

// Nobody waits for the channel that is never heard of, but where all were heard of before.
TEST_P(NcclWithChannels, DoesNotWaitForChannelsThatNeverCome) {
  const bool is_told = newest() >= 4;
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator young = host.Init(77, "young", 4, 1), old = host.Init(78, "old", 4, 1);
    NcclCommunicator wronged = host.Init(79, "wronged", 4, 1);
    const auto run_short = [&](NcclCommunicator& communicator) {
      NcclOperation operation{.channels = 8};
      host.Launch(communicator, {&operation});
      host.BeginChannels(communicator, operation, 7);
      host.EndChannels(operation);
    };
    run_short(young);
    host.Run(old, {});
    run_short(old);
    host.Run(wronged, {});
    run_short(wronged);
    host.Run(wronged, {});
    run_short(wronged);
  });
  ASSERT_TRUE(process.HasPlayed());
  const Record record = process.Read();
  EXPECT_EQ(CountersOf(record, 77), (Counters{1, 1, 1, 0, 0}));
  EXPECT_EQ(CountersOf(record, 78), (Counters{2, 2, is_told ? 1u : 2u, 0, 0}));
  EXPECT_EQ(CountersOf(record, 79), (Counters{4, 4, 4, 0, 0}));
}

// Several operations of one plan run side by side; those of the next plan after them.
TEST_P(NcclWithChannels, EndsWithALaterPlanButNotWithItsOwn) {
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator world = host.Init(77, "world", 4, 1);
    host.Run(world, {});
    NcclOperation slow, quick;
    host.Launch(world, {&slow, &quick});
    host.BeginChannels(world, slow, 2);
    host.BeginChannels(world, quick, 2);
    host.EndChannels(quick);
  });
  ASSERT_TRUE(process.HasPlayed());
  EXPECT_EQ(CountersOf(process.Read(), 77), (Counters{3, 3, 2, 0, 0}));

  NcclProcess later(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator world = host.Init(77, "world", 4, 1);
    host.Run(world, {});
    NcclOperation first, second;
    host.Launch(world, {&first});
    host.Launch(world, {&second});
    host.BeginChannels(world, first, 2);
    host.BeginChannels(world, second, 1);
    host.EndChannels(first);  // told late
    host.BeginChannels(world, second, 1);
    host.EndChannels(second);
  });
  ASSERT_TRUE(later.HasPlayed());
  EXPECT_EQ(CountersOf(later.Read(), 77), (Counters{3, 3, 3, 0, 0}));
}

TEST_P(NcclWithChannels, CountsMessagesForWhichItHasNoPlace) {
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    NcclCommunicator world = host.Init(77, "world", 4000, 1);
    std::deque<NcclOperation> operations(4000, {.function = "Send"});
    std::vector<NcclOperation*> all;
    for (NcclOperation& operation : operations) all.push_back(&operation);
    host.Launch(world, all);
    NcclOperation collective;
    host.Launch(world, {&collective});
    for (NcclOperation& operation : operations) host.BeginChannels(world, operation, 1);
    for (NcclOperation& operation : operations) host.EndChannels(operation);
  });
  ASSERT_TRUE(process.HasPlayed());
  const Record record = process.Read();
  EXPECT_EQ(CountersOf(record, 77), (Counters{1, 0, 0, 4000, 4000}));
  EXPECT_EQ(record.operations.size(), 1u);
  EXPECT_GT(record.losses.requests, 3000u);
}

TEST_P(Nccl, CountsCommunicatorsForWhichItHasNoPlace) {
  NcclProcess process(newest(), kRankOne, [](NcclHost& host) {
    std::vector<NcclCommunicator> communicators;
    for (int i = 0; i < 300; ++i) {
      communicators.push_back(host.Init(1000 + i, "one of many", 4, 1));
      host.Run(communicators.back(), {});
    }
    for (NcclCommunicator& communicator : communicators) host.Finalize(communicator);
    NcclCommunicator last = host.Init(77, "last", 4, 1);
    host.Run(last, {});
  });
  ASSERT_TRUE(process.HasPlayed());
  const Record record = process.Read();
  EXPECT_EQ(record.losses.communicators, 300u - kRecordCommunicators);
  EXPECT_EQ(CountersOf(record, 77), (Counters{1, 1, 1, 0, 0}));
}

TEST_P(Nccl, LearnsItsRankFromItsLauncher) {
  const std::vector<std::pair<NcclProcess::Environment, std::optional<Rank>>> cases{
      {{{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, Rank{3}},
      {{{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}},
       Rank{2}},
      {{{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}}, Rank{5}},
      {{{"SLURM_PROCID", "7"}, {"SLURM_NTASKS", "8"}}, Rank{7}},
      {{{"RANK", "all"}, {"WORLD_SIZE", "8"}, {"SLURM_PROCID", "7"}, {"SLURM_NTASKS", "8"}}, Rank{7}},
      {{{"RANK", "8"}, {"WORLD_SIZE", "8"}}, std::nullopt},
      {{{"RANK", "3"}}, std::nullopt},
      {{}, std::nullopt}};
  for (const auto& [environment, rank] : cases) {
    NcclProcess process(newest(), environment, [](NcclHost& host) { host.Init(77, "world", 8, 1); });
    ASSERT_TRUE(process.HasPlayed());
    EXPECT_EQ(process.Read().world_rank, rank);
  }
}

// A job of four ranks, as processes. Each is told by a function what it does.
class NcclJob {
 public:
  using Play = std::function<void(NcclHost&, NcclCommunicator&, uint32_t rank)>;

  // The ranks in the communicator are the other way round than in the job.
  NcclJob(int newest, const Play& play, uint64_t hash = 77) {
    void* shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    auto* arrived = new (shared) std::atomic<int>(0);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      processes_.emplace_back(newest, NcclProcess::Environment{{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "4"}},
                              [&](NcclHost& host) {
                                NcclCommunicator world = host.Init(hash, "world", 4, static_cast<int>(3 - rank));
                                for (int i = 0; i < 5; ++i) host.Run(world, {});
                                // As the last of these ends for all together.
                                for (++*arrived; *arrived < 4;) sched_yield();
                                play(host, world, rank);
                              });
    }
    for (NcclProcess& process : processes_) EXPECT_TRUE(process.HasPlayed());
    munmap(shared, sizeof *arrived);
  }

  Observation Observe(Duration later = 14s) const {
    std::vector<RankRecord> records;
    for (const NcclProcess& process : processes_) {
      const Record record = process.Read(later);
      records.push_back({.rank = record.world_rank.value(), .record = record});
    }
    return ObserveRecords(records, 4).observation;
  }
  std::vector<Verdict> Hangs(Duration later = 14s) const { return FindHangs(Observe(later), {}); }

 private:
  std::deque<NcclProcess> processes_;
};

// What a rank does in a collective.
enum class Part { kNotCalled, kNotBegun, kInside, kDone };
void Take(NcclHost& host, NcclCommunicator& world, Part part, NcclOperation operation = {}) {
  if (part == Part::kNotCalled) return;
  host.Launch(world, {&operation});
  if (part != Part::kNotBegun) host.BeginChannels(world, operation, operation.channels);
  if (part == Part::kDone) host.EndChannels(operation);
}

TEST_P(NcclWithChannels, AccusesWhoseProgramDoesNotCall) {
  const NcclJob job(newest(), [](NcclHost& host, NcclCommunicator& world, uint32_t rank) {
    Take(host, world, rank == 2 ? Part::kNotCalled : Part::kInside);
  });
  const std::vector<Verdict> verdicts = job.Hangs();
  EXPECT_EQ(Accused(verdicts), "RankNonCommHang 2") << Describe(verdicts);
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].sequence, 6u);
  EXPECT_EQ(verdicts[0].operation, "AllReduce of 1024 BFloat16");
  EXPECT_EQ(Accused(job.Hangs(2s)), "");  // not yet
}

TEST_P(NcclWithChannels, AccusesWhoseDeviceIsElsewhere) {
  const NcclJob job(newest(), [](NcclHost& host, NcclCommunicator& world, uint32_t rank) {
    Take(host, world, rank == 2 ? Part::kNotBegun : Part::kInside);
    Take(host, world, Part::kNotBegun);  // all programs are ahead of their devices
  });
  EXPECT_EQ(Accused(job.Hangs()), "RankNonCommHang 2") << Describe(job.Hangs());
}

// What was done without a kernel that is heard of is not what it is stuck in, in however many groups that is so.
TEST_P(NcclWithChannels, AccusesTheProgramBehindWhatIsNeverHeardOf) {
  const NcclJob job(newest(), [](NcclHost& host, NcclCommunicator& world, uint32_t rank) {
    std::vector<NcclCommunicator> others;
    for (uint64_t hash = 80; hash < 84; ++hash) others.push_back(host.Init(hash, "other", 4, static_cast<int>(rank)));
    for (NcclCommunicator& other : others) Take(host, other, Part::kNotBegun);
    Take(host, world, Part::kNotBegun);
    if (rank == 2) return;
    for (NcclCommunicator& other : others) Take(host, other, Part::kInside);
    Take(host, world, Part::kInside);
  });
  EXPECT_EQ(Accused(job.Hangs()), "RankNonCommHang 2") << Describe(job.Hangs());
}

TEST_P(NcclWithChannels, NamesTheGroupWhereAllAreInside) {
  const NcclJob job(newest(),
                    [](NcclHost& host, NcclCommunicator& world, uint32_t) { Take(host, world, Part::kInside); });
  EXPECT_EQ(Accused(job.Hangs()), "RankCommHang of group 0,1,2,3") << Describe(job.Hangs());
  EXPECT_EQ(job.Hangs(200s).at(0).level, Level::kError);
}

TEST_P(NcclWithChannels, AccusesWhoIsLeftInside) {
  const NcclJob job(newest(), [](NcclHost& host, NcclCommunicator& world, uint32_t rank) {
    Take(host, world, rank == 2 ? Part::kInside : Part::kDone);
    Take(host, world, rank == 2 ? Part::kNotBegun : Part::kInside);
  });
  EXPECT_EQ(Accused(job.Hangs()), "RankCommHang 2") << Describe(job.Hangs());
}

TEST_P(NcclWithChannels, AccusesWhoDoesNotSend) {
  const NcclJob job(newest(), [](NcclHost& host, NcclCommunicator& world, uint32_t rank) {
    if (rank == 0) Take(host, world, Part::kInside, {.function = "Recv", .peer = 3 - 2});
  });
  EXPECT_EQ(Accused(job.Hangs()), "RankNonCommHang 2") << Describe(job.Hangs());
}

TEST_P(Nccl, APauseIsNoHang) {
  const NcclJob job(newest(), [](NcclHost& host, NcclCommunicator& world, uint32_t) {
    Take(host, world, Part::kDone, {.function = "AllGather"});
    NcclOperation send{.function = "Send", .peer = 1}, receive{.function = "Recv", .peer = 2};
    host.Launch(world, {&send, &receive});
    for (NcclOperation* operation : {&send, &receive}) host.BeginChannels(world, *operation, 2);
    for (NcclOperation* operation : {&send, &receive}) host.EndChannels(*operation);
    Take(host, world, Part::kNotBegun);  // done without a kernel that is heard of
  });
  EXPECT_EQ(Accused(job.Hangs(600s)), "") << Describe(job.Hangs(600s));
}

// Version 2 does not tell what the device does, so that nothing can be said; and where a hash is missing, nothing of
// other ranks.
TEST(NcclWithout, AccusesNobodyWhereTooLittleIsTold) {
  const auto play = [](NcclHost& host, NcclCommunicator& world, uint32_t rank) {
    Take(host, world, rank == 2 ? Part::kNotCalled : Part::kInside);
  };
  EXPECT_EQ(Accused(NcclJob(2, play).Hangs()), "");
  EXPECT_EQ(Accused(NcclJob(3, play, 0).Hangs()), "");
  EXPECT_EQ(Accused(NcclJob(3, play).Hangs()), "RankNonCommHang 2");
}

const auto kVersionName = [](const auto& instance) { return "V" + std::to_string(instance.param); };
INSTANTIATE_TEST_SUITE_P(Versions, Nccl, testing::Values(2, 3, 4, 5, 6, 7), kVersionName);
INSTANTIATE_TEST_SUITE_P(Versions, NcclWithChannels, testing::Values(3, 4, 5, 6), kVersionName);

}  // namespace
}  // namespace aimaster::c4d
