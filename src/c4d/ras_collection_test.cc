#include "c4d/ras_collection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "c4d/c4d_test_support.h"
#include "c4d/dump_test_support.h"
#include "c4d/folder_reading.h"
#include "c4d/ras_test_support.h"

namespace aimaster::c4d {
namespace {

constexpr const char* kFirst = "2026-06-19 06:51:00";
constexpr const char* kLater = "2026-06-19 06:52:00";
using RasFiles = std::map<std::string, std::string>;

FolderFindings FindingsIn(const RasFiles& files, std::optional<Duration> stood_for = {}) {
  FolderReading folder;
  for (const auto& [name, bytes] : files) folder.Add(name, bytes);
  HangTiming timing;
  if (stood_for) timing.timeout = *stood_for;
  return folder.Conclude(stood_for, timing);
}

std::string NotesOf(const FolderFindings& findings) {
  std::string text;
  for (const DumpNote& note : findings.reading.notes) text += note.file + " " + note.reason + "\n";
  return text;
}

// Four ranks, two by two in tensor groups and across in data groups. Of each group what its members have launched.
struct SmallJob {
  std::vector<int> all = {1, 1, 1, 1}, tensor_0 = {6, 6}, tensor_1 = {6, 6}, data_0 = {2, 2}, data_1 = {2, 2};

  std::string At(const char* time) const {
    return RasMaker(time)
        .Communicator({0, 1, 2, 3}, all)
        .Communicator({0, 1}, tensor_0)
        .Communicator({2, 3}, tensor_1)
        .Communicator({0, 2}, data_0)
        .Communicator({1, 3}, data_1)
        .Text();
  }
  RasFiles Twice() const { return {{"a", At(kFirst)}, {"b", At(kLater)}}; }
};

// Rank 0 has not come to its fifth AllReduce in the tensor group, and so rank 1 not to the data group.
SmallJob Stuck() { return {.tensor_0 = {4, 5}, .data_0 = {1, 2}, .data_1 = {1, 2}}; }

TEST(RasCollection, WhoIsBehindInTwoLooksIsNamed) {
  const FolderFindings findings = FindingsIn(Stuck().Twice());
  EXPECT_EQ(Accused(findings.verdicts), "RankNonCommHang 0") << Describe(findings.verdicts);
  EXPECT_EQ(findings.verdicts[0].since, 59s);
  EXPECT_EQ(findings.verdicts[0].waiting, (std::vector{Rank{1}, Rank{2}, Rank{3}}));
  EXPECT_EQ(findings.verdicts[0].operation, "AllReduce");
  EXPECT_EQ(findings.verdicts[0].sequence, 5);
  EXPECT_EQ(findings.verdicts[0].evidence.back(), "Rank 0 is process 1000 on 10.0.0.0, device 0.");
  EXPECT_EQ(findings.reading.ranks_seen, 4);
  EXPECT_EQ(NotesOf(findings), "");
}

TEST(RasCollection, OneLookAccusesNobodyUnlessItIsSaidThatTheJobStood) {
  const RasFiles one = {{"a", Stuck().At(kFirst)}};
  const FolderFindings findings = FindingsIn(one);
  EXPECT_TRUE(findings.verdicts.empty()) << Describe(findings.verdicts);
  EXPECT_FALSE(findings.reading.is_judged);
  EXPECT_NE(NotesOf(findings).find("a is one look at a job"), std::string::npos);
  EXPECT_NE(NotesOf(findings).find("a says: rank 0 has launched 4 collectives in 0x4e0104c2022fa2f1, others up to 5"),
            std::string::npos)
      << NotesOf(findings);
  EXPECT_EQ(Accused(FindingsIn(one, 60s).verdicts), "RankNonCommHang 0");
}

TEST(RasCollection, WhatMovesDoesNotHang) {
  RasFiles files = Stuck().Twice();
  files["b"] = SmallJob{.tensor_0 = {8, 9}, .tensor_1 = {10, 10}, .data_0 = {3, 4}, .data_1 = {3, 4}}.At(kLater);
  const FolderFindings moved = FindingsIn(files);
  EXPECT_TRUE(moved.verdicts.empty()) << Describe(moved.verdicts);
  EXPECT_NE(NotesOf(moved).find("goes on"), std::string::npos) << NotesOf(moved);
  files["b"] = Stuck().At("2026-06-19 06:51:05");
  const FolderFindings soon = FindingsIn(files);
  EXPECT_TRUE(soon.verdicts.empty()) << Describe(soon.verdicts);
  EXPECT_NE(NotesOf(soon).find("too soon"), std::string::npos) << NotesOf(soon);
}

TEST(RasCollection, WhereOnlyAPartMovesWhoMovesIsNotNamed) {
  SmallJob later = Stuck();
  later.tensor_1 = {7, 7};  // ranks 2 and 3 go on, in spite of what they wait for
  const FolderFindings findings = FindingsIn({{"a", Stuck().At(kFirst)}, {"b", later.At(kLater)}});
  EXPECT_EQ(Accused(findings.verdicts), "RankNonCommHang 0") << Describe(findings.verdicts);
  SmallJob culprit = Stuck();
  culprit.tensor_0 = {5, 6};
  EXPECT_EQ(Accused(FindingsIn({{"a", Stuck().At(kFirst)}, {"b", culprit.At(kLater)}}).verdicts), "");
}

TEST(RasCollection, AllMembersOfAGroupThatAreBehindElsewhereAreNamedAsAGroup) {
  SmallJob job = Stuck();
  job.tensor_0 = {5, 5};  // perhaps a device is stuck in the fifth
  const FolderFindings findings = FindingsIn(job.Twice());
  EXPECT_EQ(Accused(findings.verdicts), "RankNonCommHang of group 0,1") << Describe(findings.verdicts);
  EXPECT_EQ(findings.verdicts[0].waiting, (std::vector{Rank{2}, Rank{3}}));
}

TEST(RasCollection, WhereAllHaveLaunchedTheSameNobodyIsNamed) {
  const FolderFindings findings = FindingsIn(SmallJob{}.Twice());
  EXPECT_TRUE(findings.verdicts.empty()) << Describe(findings.verdicts);
  EXPECT_NE(NotesOf(findings).find("have launched the same"), std::string::npos) << NotesOf(findings);
}

TEST(RasCollection, WhoDoesNotAnswerIsNotSeenAndWhoMayWaitForItIsNotAccused) {
  SmallJob job = Stuck();
  job.all[0] = job.tensor_0[0] = job.data_0[0] = -1;
  const FolderFindings findings = FindingsIn(job.Twice());
  EXPECT_EQ(Accused(findings.verdicts), "") << Describe(findings.verdicts);
  ASSERT_EQ(findings.verdicts.size(), 1);
  EXPECT_EQ(findings.verdicts[0].kind, VerdictKind::kNoProbeData);
  EXPECT_EQ(findings.verdicts[0].ranks, std::vector{Rank{0}});
  EXPECT_EQ(findings.verdicts[0].evidence[0], "Rank 0 is not seen: it does not answer RAS.");
  EXPECT_EQ(findings.reading.ranks_seen, 3);
}

TEST(RasCollection, WhoMayWaitInASendThatIsNotCountedIsNotAccused) {
  const auto look = [](const char* time) {
    return RasMaker(time)
        .Communicator({0, 1, 2, 3}, {7, 7, 7, 7})
        .Communicator({0, 1}, {4, 5})
        .Communicator({0, 2}, {0, 0})  // for a pipeline, it may be
        .Text();
  };
  const FolderFindings findings = FindingsIn({{"a", look(kFirst)}, {"b", look(kLater)}});
  EXPECT_EQ(Accused(findings.verdicts), "") << Describe(findings.verdicts);
  EXPECT_NE(NotesOf(findings).find("b says: rank 0 has launched 4 collectives"), std::string::npos);
}

TEST(RasCollection, WhatCantBeOneSequenceIsAMismatch) {
  const auto look = [](const char* time) {
    const RasTestCounts most = {{"AllReduce", 3}, {"AllGather", 1}};
    return RasMaker(time).Communicator({0, 1, 2}, {most, {{"AllReduce", 2}, {"AllGather", 2}}, most}).Text();
  };
  const FolderFindings findings = FindingsIn({{"a", look(kFirst)}, {"b", look(kLater)}});
  EXPECT_EQ(Accused(findings.verdicts), "CollectiveMismatch 1") << Describe(findings.verdicts);
  EXPECT_EQ(findings.verdicts[0].evidence[2], "Rank 1 has launched 2 AllReduce, 2 AllGather.");
  EXPECT_EQ(Accused(FindingsIn({{"a", look(kFirst)}}).verdicts), "") << "one look may tear a number";
}

TEST(RasCollection, WithoutACommunicatorOfAllRanksHaveOtherNumbers) {
  const auto look = [](const char* time) {
    return RasMaker(time).Communicator({1, 0}, {4, 5}).Communicator({3, 2}, {5, 5}).Text();
  };
  const FolderFindings findings = FindingsIn({{"a", look(kFirst)}, {"b", look(kLater)}});
  ASSERT_EQ(Accused(findings.verdicts), "RankNonCommHang 1") << Describe(findings.verdicts);
  EXPECT_EQ(findings.verdicts[0].evidence.back(), "Rank 1 is process 1001 on 10.0.0.0, device 1.");
  EXPECT_NE(NotesOf(findings).find("not those of the job"), std::string::npos);
}

TEST(RasCollection, FilesThatAreOfNoUseAreNamed) {
  RasFiles files = Stuck().Twice();
  files["c"] = files["b"];
  files["d"] = RasMaker("2026-06-18 00:00:00").Communicator({0, 1, 2}, {4, 5, 5}).Text();
  files["e"] = files["a"].substr(0, 400);
  files["f"] = "hello";
  const FolderFindings findings = FindingsIn(files);
  EXPECT_EQ(Accused(findings.verdicts), "RankNonCommHang 0") << Describe(findings.verdicts);
  const std::string notes = NotesOf(findings);
  EXPECT_NE(notes.find("c is the same as b"), std::string::npos) << notes;
  EXPECT_NE(notes.find("d is of another job"), std::string::npos) << notes;
  EXPECT_NE(notes.find("e is cut short"), std::string::npos) << notes;
  EXPECT_NE(notes.find("f is neither a pickle nor JSON"), std::string::npos) << notes;
}

TEST(RasCollection, DumpsOfTheFlightRecorderSayMore) {
  RasFiles files = Stuck().Twice();
  files["d_0"] = DumpMaker().Group(0, "0", {0, 1}, 8, 7).Entry(0, "0", 8, "nccl:all_reduce").Text();
  files["d_1"] = DumpMaker().Group(0, "0", {0, 1}, 7, 7).Text();
  const FolderFindings findings = FindingsIn(files);
  EXPECT_EQ(Accused(findings.verdicts), "RankNonCommHang 1") << Describe(findings.verdicts);
  EXPECT_NE(NotesOf(findings).find("a is not needed"), std::string::npos) << NotesOf(findings);
}

TEST(RasCollection, AFileThatIsCutAnywhereAccusesNobodyElse) {
  const RasFiles whole = Stuck().Twice();
  for (const char* name : {"a", "b"}) {
    for (size_t size = 0; size < whole.at(name).size(); size += 3) {
      RasFiles files = whole;
      files[name].resize(size);
      const std::string accused = Accused(FindingsIn(files).verdicts);
      ASSERT_TRUE(accused.empty() || accused == "RankNonCommHang 0") << name << " " << size << ": " << accused;
      files[name] = whole.at(name);
      files[name][size] = '7';  // a number, it may be
      FindingsIn(files);
    }
  }
}

// A training of tensor and data parallel groups in which one rank stops, or its device, and all others go on as far as
// they can: each launches a few operations ahead of what its device has done, and a device does them in order.
class SmallTraining {
 public:
  SmallTraining(int tensor, int data)
      : ranks_(static_cast<size_t>(tensor * data)), program_(ranks_), launched_(ranks_) {
    const int ranks = tensor * data;
    groups_.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) groups_[0].push_back(rank);
    for (int first = 0; tensor > 1 && first < ranks; first += tensor) {
      groups_.emplace_back();
      for (int rank = first; rank < first + tensor; ++rank) groups_.back().push_back(rank);
    }
    for (int first = 0; first < tensor; ++first) {
      groups_.emplace_back();
      for (int rank = first; rank < ranks; rank += tensor) groups_.back().push_back(rank);
    }
    for (size_t group = 0; group < groups_.size(); ++group) {
      for (const int rank : groups_[group])
        program_[At(rank)].insert(program_[At(rank)].end(), group == 0 ? 1 : 2, group);
    }
    done_.assign(ranks_, 0);
  }

  void Run(int culprit, bool is_device, size_t stops_at, size_t ahead) {
    constexpr size_t kEnd = 200;
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t rank = 0; rank < ranks_; ++rank) {
        const size_t position = launched_[rank].size();
        const bool stops = rank == At(culprit) && !is_device && position >= stops_at;
        if (stops || position == kEnd || position - done_[rank] >= ahead) continue;
        launched_[rank].push_back(program_[rank][position % program_[rank].size()]);
        moves = true;
      }
      for (size_t group = 0; group < groups_.size(); ++group) {
        const bool ends = std::ranges::all_of(groups_[group], [&](int member) {
          const size_t next = done_[At(member)];
          const bool is_stuck = member == culprit && is_device && next >= stops_at;
          return !is_stuck && next < launched_[At(member)].size() && launched_[At(member)][next] == group;
        });
        if (!ends) continue;
        for (const int member : groups_[group]) ++done_[At(member)];
        moves = true;
      }
    }
  }

  std::string Look(const char* time) const {
    RasMaker maker(time);
    for (size_t group = 0; group < groups_.size(); ++group) {
      std::vector<int> counts;
      for (const int member : groups_[group]) {
        counts.push_back(static_cast<int>(std::ranges::count(launched_[At(member)], group)));
      }
      maker.Communicator(groups_[group], counts);
    }
    return maker.Text();
  }

 private:
  static size_t At(int rank) { return static_cast<size_t>(rank); }

  size_t ranks_;
  std::vector<std::vector<int>> groups_;
  std::vector<std::vector<size_t>> program_;   // of each rank the groups of one step
  std::vector<std::vector<size_t>> launched_;  // of each rank the groups
  std::vector<size_t> done_;
};

TEST(RasCollection, WhoeverStopsItIsNobodyElse) {
  std::mt19937 chance(7);
  const auto below = [&](int end) { return std::uniform_int_distribution<int>(0, end - 1)(chance); };
  int named = 0;
  for (int seed = 0; seed < 400; ++seed) {
    const bool is_device = seed % 2 != 0;
    const int tensor = 1 << below(3), data = 2 + below(3);
    const auto culprit = static_cast<uint32_t>(below(tensor * data));
    SmallTraining training(tensor, data);
    training.Run(static_cast<int>(culprit), is_device, static_cast<size_t>(1 + below(40)),
                 static_cast<size_t>(1 + below(3)));
    const std::vector<Verdict> verdicts =
        FindingsIn({{"a", training.Look(kFirst)}, {"b", training.Look(kLater)}}).verdicts;
    for (const Verdict& verdict : verdicts) {
      const bool is_right = verdict.is_group ? std::ranges::binary_search(verdict.ranks, Rank{culprit})
                                             : verdict.ranks == std::vector{Rank{culprit}};
      ASSERT_TRUE(is_right) << "seed " << seed << ", culprit " << culprit << "\n" << Describe(verdicts);
      if (!verdict.is_group) ++named;
    }
  }
  EXPECT_GT(named, 100);
}

}  // namespace
}  // namespace aimaster::c4d
