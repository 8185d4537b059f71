#include "cli/job_texts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/count.h"

namespace aimaster::cli {
namespace {

using namespace std::chrono_literals;

Wall At(Duration after) { return {std::chrono::seconds(1'800'000'000) + after}; }

struct Story {
  JobSpec spec;
  JobSnapshot snapshot;

  Story() {
    spec.id = JobId::FromRandom(1);
    spec.name = "train.py";
    spec.create_time = At(0s);
    spec.fault_tolerance.enable_job_restart = true;
    for (uint32_t i = 0; i < 4; ++i) {
      InstanceState instance;
      instance.name = InstanceName(spec.id, Role::kWorker, i);
      instance.first_rank = Rank{i};
      instance.status = InstanceStatus::kRunning;
      instance.ready = i < 3;
      snapshot.instances.push_back(instance);
    }
    snapshot.summary.status = JobStatus::kRunning;
    snapshot.rounds.push_back({.round = Round{0}, .stages = {{Stage::kStart, {}, 900ms}}});
  }

  void Restart() {
    RestartRecord record;
    record.restarts = 1;
    record.instance_name = InstanceName(spec.id, Role::kWorker, 2);
    record.node_name = "node-1";
    record.judgement.root_rank = Rank{2};
    record.judgement.error_code = 7;
    record.judgement.message = "RuntimeError: no such layer";
    snapshot.records.push_back(record);
    snapshot.rounds.push_back({.round = Round{1}, .stages = {{Stage::kDetect, {}, 2ms}, {Stage::kStop, {}, 1200ms}}});
    snapshot.summary.restarts = 1;
    snapshot.summary.round = Round{1};
  }
  void End(JobStatus status) {
    snapshot.summary.status = status;
    snapshot.summary.end_time = At(125s);
  }
  std::vector<std::string> Summary(const Terminal& terminal = {}) const {
    return SummaryLines(spec, snapshot, "/home/jobs/x", terminal);
  }
};

TEST(JobTexts, TheLiveLineSaysWhereTheJobIs) {
  Story story;
  story.Restart();
  EXPECT_EQ(LiveLine(story.spec, story.snapshot, At(130s + 400ms)),
            story.spec.id.text() + " Running · round 1 · 1 of 3 restarts · 3 of 4 ranks ready · 2 min 10 s");
}

TEST(JobTexts, TheSummaryOfAPlainSuccessIsShort) {
  Story story;
  story.End(JobStatus::kSucceeded);
  EXPECT_EQ(story.Summary(), (std::vector<std::string>{
                                 "aimaster: job " + story.spec.id.text() + " Succeeded after 2 min 5 s",
                                 "aimaster: logs: /home/jobs/x/nodes",
                             }));
}

TEST(JobTexts, TheSummarySaysWhatFailedWhereAndWhatItCost) {
  Story story;
  story.Restart();
  story.End(JobStatus::kFailed);
  story.snapshot.summary.reason_message = "worker-2 failed again";
  EXPECT_EQ(story.Summary(),
            (std::vector<std::string>{
                "aimaster: job " + story.spec.id.text() + " Failed after 2 min 5 s",
                "aimaster: reason: worker-2 failed again",
                "aimaster: rounds: 2 rounds, 1 of 3 restarts",
                "aimaster: failed: round 0: rank 2 of worker-2 on node-1, exit code 7: RuntimeError: no such layer",
                "aimaster: time lost: 1.2 s (detect 2 ms, stop 1.2 s)",
                "aimaster: logs: /home/jobs/x/nodes",
                "aimaster: why: aimaster explain " + story.spec.id.text(),
            }));
}

TEST(JobTexts, AnExitCodeWithoutWordsIsSaidOnce) {
  Story story;
  story.Restart();
  story.snapshot.records.back().judgement.message = "exit code 7";
  story.End(JobStatus::kFailed);
  EXPECT_EQ(std::ranges::count(story.Summary(), "aimaster: failed: round 0: rank 2 of worker-2 on node-1, exit code 7"),
            1);
}

TEST(JobTexts, OnATerminalTheSummaryIsABlockAndALongStoryIsCut) {
  Story story;
  for (int i = 0; i < 8; ++i) story.Restart();
  story.End(JobStatus::kFailed);
  const std::vector<std::string> lines = story.Summary(Terminal{.is_terminal = true, .width = 80});
  EXPECT_EQ(lines[0], "");
  EXPECT_EQ(lines[1], "job " + story.spec.id.text() + " (train.py) Failed after 2 min 5 s");
  EXPECT_EQ(lines[3], "  failed     3 earlier failures left out here");
  EXPECT_EQ(std::ranges::count_if(lines, [](const std::string& line) { return line.contains("RuntimeError"); }), 5);
}

TEST(JobTexts, TheFirstStartIsNoLostTime) {
  EXPECT_EQ(TimeLost({{.round = Round{0}, .stages = {{Stage::kStart, {}, 5s}}}}), "");
}

TEST(JobTexts, EventsAreOneSafeLine) {
  const JobEvent event{.at = {{}, At(0s)}, .type = "aimaster.instance.failed", .message = "rank 1\n\x1b[31m died"};
  const std::optional<std::string> line = EventLine(event, Terminal{});
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->starts_with("aimaster: "));
  EXPECT_TRUE(line->ends_with(" rank 1  [31m died")) << *line;
  EXPECT_FALSE(EventLine({.type = "aimaster.node.joined"}, Terminal{}));
}

TEST(JobTexts, NounsAreCounted) {
  EXPECT_EQ(Count(1, "round"), "1 round");
  EXPECT_EQ(Count(0, "round"), "0 rounds");
}

}  // namespace
}  // namespace aimaster::cli
