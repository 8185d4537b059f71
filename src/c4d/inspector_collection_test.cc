#include "c4d/inspector_collection.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "c4d/c4d_test_support.h"
#include "c4d/dump_test_support.h"
#include "c4d/folder_reading.h"
#include "c4d/inspector_test_support.h"

namespace aimaster::c4d {
namespace {

using InspectorFiles = std::map<std::string, std::string>;

constexpr int kRanks = 4;
constexpr int64_t kStepUs = 100'000;
constexpr int64_t kUsualUs = 2'000;
constexpr uint64_t kSteps = 600;  // a minute

// For how long a rank is in the collective of a step.
using Took = std::function<int64_t(int rank, uint64_t step)>;

InspectorFiles Logs(const Took& took, uint64_t steps = kSteps, bool has_markers = false) {
  InspectorFiles files;
  for (int rank = 0; rank < kRanks; ++rank) {
    InspectorLogMaker maker(rank, has_markers);
    for (uint64_t step = 0; step < steps; ++step) {
      maker.Collective("0x7f8c496ae9f661", kRanks, rank, step, took(rank, step), static_cast<int64_t>(step) * kStepUs);
    }
    files["host-pid" + std::to_string(1000 + rank) + ".log"] = maker.Text();
  }
  return files;
}

FolderFindings FindSlow(const InspectorFiles& files) {
  FolderReading folder;
  for (const auto& [name, bytes] : files) folder.Add(name, bytes);
  return folder.Conclude({}, {});
}

std::string InspectorNotes(const FolderFindings& findings) {
  std::string text;
  for (const DumpNote& note : findings.reading.notes) text += note.file + " " + note.reason + "\n";
  return text;
}

// After a third of the time rank 2 comes 20 ms late.
int64_t Late(int rank, uint64_t step) { return step > kSteps / 3 && rank != 2 ? kUsualUs + 20'000 : kUsualUs; }

TEST(InspectorCollection, WhoComesLateIsSlowOutside) {
  for (const bool has_markers : {false, true}) {
    const FolderFindings findings = FindSlow(Logs(&Late, kSteps, has_markers));
    EXPECT_EQ(Accused(findings.verdicts), "RankNonCommSlow 2") << Describe(findings.verdicts);
    EXPECT_EQ(findings.verdicts[0].level, Level::kInfo);
    EXPECT_EQ(findings.verdicts[0].evidence.back(), "Rank 2 is process 1002 on host-0.");
    EXPECT_EQ(findings.reading.ranks_seen, 4);
    EXPECT_EQ(InspectorNotes(findings), "");
  }
}

TEST(InspectorCollection, AGroupThatGetsSlowerIsSlowInCommunication) {
  const FolderFindings findings =
      FindSlow(Logs([](int, uint64_t step) { return step > kSteps / 3 ? 5 * kUsualUs : kUsualUs; }));
  EXPECT_EQ(Accused(findings.verdicts), "RankCommSlow of group 0,1,2,3") << Describe(findings.verdicts);
  EXPECT_EQ(findings.reading.observation.communicators.at(*findings.verdicts[0].communicator).name, "0x7f8c496ae9f661");
}

TEST(InspectorCollection, AHealthyJobAndOneThatIsTooShort) {
  const auto healthy = [](int rank, uint64_t step) { return kUsualUs + static_cast<int64_t>((step * 7 + rank) % 13); };
  const FolderFindings findings = FindSlow(Logs(healthy));
  EXPECT_TRUE(findings.verdicts.empty()) << Describe(findings.verdicts);
  EXPECT_EQ(InspectorNotes(findings), "");
  const FolderFindings brief = FindSlow(Logs(&Late, 100));
  EXPECT_TRUE(brief.verdicts.empty()) << Describe(brief.verdicts);
  EXPECT_FALSE(brief.reading.is_judged);
  EXPECT_NE(InspectorNotes(brief).find("too little to judge"), std::string::npos) << InspectorNotes(brief);
}

TEST(InspectorCollection, WhereALogIsMissingNobodyIsNamed) {
  InspectorFiles files = Logs(&Late);
  files.erase("host-pid1003.log");
  const FolderFindings findings = FindSlow(files);
  EXPECT_TRUE(findings.verdicts.empty()) << Describe(findings.verdicts);
  EXPECT_EQ(findings.reading.ranks_seen, 3);
  ASSERT_EQ(findings.reading.observation.ranks.size(), 4);
  EXPECT_FALSE(findings.reading.observation.ranks[3].is_observed);
}

// Rank 0 waits for rank 1 in a group of the two, and so comes late to the one with rank 2.
TEST(InspectorCollection, WhoIsLateBecauseOfAnotherIsNotNamedWhereThatOnesLogIsMissing) {
  for (const bool is_missing : {false, true}) {
    InspectorFiles files;
    for (const int rank : {0, 1, 2, 3}) {
      InspectorLogMaker maker(rank);
      for (uint64_t step = 0; step < kSteps; ++step) {
        const int64_t at = static_cast<int64_t>(step) * kStepUs;
        const bool is_slow = step > kSteps / 3;
        const bool waits_first = is_slow && rank == 0, waits_then = is_slow && rank >= 2;
        maker.Collective(rank < 2 ? "0xa" : "0xb", 2, rank % 2, step, waits_first ? 22'000 : kUsualUs, at);
        maker.Collective(rank % 2 == 0 ? "0xc" : "0xd", 2, rank / 2, step, waits_then ? 22'000 : kUsualUs, at + 30'000);
        maker.Collective("0xe", 4, rank, step, kUsualUs, at + 60'000);
      }
      if (rank != 1 || !is_missing) files[std::to_string(rank)] = maker.Text();
    }
    const FolderFindings findings = FindSlow(files);
    EXPECT_EQ(Accused(findings.verdicts), is_missing ? "" : "RankNonCommSlow 1") << Describe(findings.verdicts);
  }
}

TEST(InspectorCollection, OfWhomTooMuchIsNotToldIsNotAccused) {
  InspectorFiles files;
  for (int rank = 0; rank < kRanks; ++rank) {
    InspectorLogMaker maker(rank);
    for (uint64_t step = 0; step < kSteps; ++step) {
      maker.Collective("0x7f", kRanks, rank, 2 * step, Late(rank, step), static_cast<int64_t>(step) * kStepUs);
    }
    files[std::to_string(rank)] = maker.Text();
  }
  const FolderFindings findings = FindSlow(files);
  EXPECT_TRUE(findings.verdicts.empty()) << Describe(findings.verdicts);
  EXPECT_NE(InspectorNotes(findings).find("lacks more than a tenth"), std::string::npos);
}

TEST(InspectorCollection, ALogThatIsCutAnywhereAccusesNobodyElse) {
  const InspectorFiles whole = Logs(&Late);
  for (const auto& [name, text] : whole) {
    for (size_t size = 0; size < text.size(); size += text.size() / 7 + 1) {
      InspectorFiles files = whole;
      files[name].resize(size);
      const std::string accused = Accused(FindSlow(files).verdicts);
      EXPECT_TRUE(accused.empty() || accused == "RankNonCommSlow 2") << name << " " << size << ": " << accused;
      files[name] = text.substr(size);
      const std::string without = Accused(FindSlow(files).verdicts);
      EXPECT_TRUE(without.empty() || without == "RankNonCommSlow 2") << name << " " << size << ": " << without;
    }
  }
}

TEST(InspectorCollection, BesideDumpsOfAnotherNumberOfRanksLogsAreLeftOut) {
  InspectorFiles files = Logs(&Late);
  for (const int ranks : {4, 2}) {
    std::vector<int> members;
    for (int rank = 0; rank < ranks; ++rank) members.push_back(rank);
    for (int rank = 0; rank < 4; ++rank) files.erase("d_" + std::to_string(rank));
    for (const int rank : members) {
      files["d_" + std::to_string(rank)] = DumpMaker().Group(0, "0", members, 7, 7).Text();
    }
    const FolderFindings findings = FindSlow(files);
    EXPECT_EQ(Accused(findings.verdicts), ranks == 4 ? "RankNonCommSlow 2" : "") << Describe(findings.verdicts);
    EXPECT_EQ(InspectorNotes(findings).contains("host-pid1003.log numbers ranks in another way"), ranks != 4);
  }
}

TEST(InspectorCollection, ACopyOfALogIsNamed) {
  InspectorFiles files = Logs(&Late);
  files["z"] = files["host-pid1001.log"];
  const FolderFindings findings = FindSlow(files);
  EXPECT_EQ(Accused(findings.verdicts), "RankNonCommSlow 2") << Describe(findings.verdicts);
  EXPECT_EQ(InspectorNotes(findings), "z is of the same process as host-pid1001.log\n");
}

}  // namespace
}  // namespace aimaster::c4d
