// A storm: thousands fail at once. However they arrive, the one that began is there in the end, and the rest is small.
#include "engine/failures.h"

#include <random>

#include "engine/engine_harness.h"

namespace aimaster {
namespace {

RankFailure Wordy(const EngineHarness& job, uint32_t rank, Duration after) {
  RankFailure failure = job.Failure(rank, 1);
  failure.exit->time = job.now.wall + after;
  failure.last_error_line = std::string(kErrorTextMaxBytes, 'x');
  failure.error_file_message = std::string(kErrorTextMaxBytes, 'y');
  for (int i = 0; i < 4; ++i) {
    failure.matches.push_back({"PeerLost", std::string(kErrorTextMaxBytes, 'z'), "rank0.err", 100u + i});
  }
  return failure;
}

void FeedAsAMaster(EngineHarness& job, Event event) { job.Feed(job.engine.Fit(std::move(event))); }

TEST(Storm, EvidenceIsBoundedAndTheCauseIsKeptWholeThoughItComesLast) {
  constexpr uint32_t kRanks = 3000;
  EngineHarness job(kRanks, 4);
  job.Run();
  for (uint32_t rank = 0; rank + 1 < kRanks; ++rank) {
    FeedAsAMaster(job, RankFailed{Wordy(job, rank, std::chrono::milliseconds{10})});
  }
  RankFailure cause = Wordy(job, kRanks - 1, std::chrono::milliseconds{1});
  cause.matches = {{"CudaEccUncorrectable", "uncorrectable ECC error", "rank0.err", 5}};
  FeedAsAMaster(job, RankFailed{cause});

  ASSERT_EQ(job.job().failures.size(), kRanks);
  EXPECT_EQ(job.job().failures.back(), cause);
  uint64_t bytes = 0;
  for (const RankFailure& failure : job.job().failures) bytes += FailureBytes(failure);
  EXPECT_EQ(bytes, job.job().tallies.failure_bytes);
  EXPECT_LT(bytes, kEarliestBytesMax + kRanks * 2000);
  EXPECT_EQ(job.job().tallies, CountAll(job.job()));
}

TEST(Storm, TheEarliestOfAKindIsWholeInWhateverOrderTheyCome) {
  EngineHarness job(400, 1);
  job.Run();
  std::vector<uint32_t> ranks(400);
  for (uint32_t i = 0; i < 400; ++i) ranks[i] = i;
  std::shuffle(ranks.begin(), ranks.end(), std::mt19937(7));
  for (const uint32_t rank : ranks) FeedAsAMaster(job, RankFailed{Wordy(job, rank, std::chrono::milliseconds{rank})});
  const auto first = std::ranges::min_element(job.job().failures, {}, FailureTime);
  EXPECT_EQ(*first, Wordy(job, 0, {}));
  const auto whole = std::ranges::count_if(
      job.job().failures, [](const RankFailure& f) { return f.last_error_line.size() == kErrorTextMaxBytes; });
  EXPECT_LT(whole, 40) << "most are told in short";
}

TEST(Storm, ATrimmedFailureKeepsItsRulesInTheOrderOfItsLines) {
  EngineHarness job(2);
  job.Run();
  job.Fail(0);
  job.EndedAll();
  RankFailure failure = Wordy(job, 1, {});
  failure.matches.push_back({"Second", std::string(5000, '\xC3') + "\xA9", "rank0.err", 200});
  failure.matches.insert(failure.matches.begin(), {"Forgotten", "long ago", "rank0.out", 0});
  failure.matches.push_back({"Telling", "it went on", "rank0.out", kOldNewsBytes + 1});
  JobState full = job.job();
  full.phase = Phase::kCollecting;
  full.tallies.failure_bytes = kEarliestBytesMax;
  const RankFailure trimmed = FitFailure(full, failure);
  ASSERT_EQ(trimmed.matches.size(), 3u);
  EXPECT_EQ(trimmed.matches[0].rule, "PeerLost");
  EXPECT_EQ(trimmed.matches[1].rule, "Second");
  EXPECT_EQ(trimmed.matches[2].rule, "Telling");
  EXPECT_LE(trimmed.matches[0].line.size(), kTrimmedTextMaxBytes);
  EXPECT_EQ(FailureClassOf(trimmed), FailureClassOf(failure));
  EXPECT_EQ(FitFailure(full, trimmed), trimmed) << "once is enough";
}

TEST(Storm, BeyondAllBoundsFailuresAreCountedAndNoKindLosesItsEarliest) {
  constexpr uint32_t kRanks = kFailuresMax + 200;
  EngineHarness job(kRanks, 1);
  job.Run();
  for (uint32_t i = 0; i < kRanks; ++i) {
    RankFailure failure = job.Failure(i, 1);
    failure.exit->time = job.now.wall + std::chrono::milliseconds{kRanks - i};  // each later one was earlier
    if (i == kFailuresMax + 50) failure.matches = {{"Rare", "the only one of its kind", "rank0.err", 1}};
    FeedAsAMaster(job, RankFailed{failure});
  }
  EXPECT_EQ(job.job().failures.size(), kFailuresMax);
  EXPECT_EQ(job.job().failures_dropped, 200u);
  const auto has = [&](auto condition) { return std::ranges::any_of(job.job().failures, condition); };
  EXPECT_TRUE(has([](const RankFailure& f) { return f.rank == Rank{kRanks - 1}; }));
  EXPECT_TRUE(has([](const RankFailure& f) { return !f.matches.empty(); }));
  EXPECT_EQ(job.job().tallies.failure_bytes, CountAll(job.job()).failure_bytes);
}

}  // namespace
}  // namespace aimaster
