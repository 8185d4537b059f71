#include "journal/job_json.h"

#include "journal/journal_harness.h"

namespace aimaster {
namespace {

using nlohmann::json;

class JobJsonTest : public testing::Test {
 protected:
  // The job `story_` has been appended to a journal, and is read from there.
  void Read() {
    directory_.emplace(*JobDirectory::Create(home_, story_.spec));
    const Played played = Play(story_.inputs);
    Result<Journal> journal = Journal::OpenOrCreate(directory_->journal(), "rules");
    ASSERT_TRUE(journal->Append(played.batch, played.engine.job()));
    JobReader reader = *JobReader::Open(*directory_);
    snapshot_ = *reader.ReadSnapshot();
    decisions_ = *reader.ReadDecisions();
  }
  json Get() const { return GetJson(*directory_, story_.spec, snapshot_); }

  TemporaryDirectory place_;
  const Home home_{place_ / "home"};
  EngineHarness story_ = RestartedJob();
  std::optional<JobDirectory> directory_;
  JobSnapshot snapshot_;
  std::vector<Decision> decisions_;
};

void ExpectTime(const json& time) {
  ASSERT_TRUE(time.is_string()) << time;
  EXPECT_TRUE(ParseRfc3339(time.get<std::string>())) << time;
}

TEST_F(JobJsonTest, TheListHasOneRowPerJob) {
  Read();
  const json list = ListJson(ListJobs(home_));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["job_id"], "dlc0123456789abc");
  EXPECT_EQ(list[0]["name"], "story");
  EXPECT_EQ(list[0]["status"], "Running");
  EXPECT_EQ(list[0]["restarts"], 1);
  EXPECT_EQ(list[0]["framework"], "pytorch");
  ExpectTime(list[0]["create_time"]);
}

TEST_F(JobJsonTest, AJobIsDescribedWithItsInstancesAndNodes) {
  story_.spec.fault_tolerance.max_num_of_job_restart = 5;
  Read();
  const json job = Get();
  EXPECT_EQ(job["job_id"], "dlc0123456789abc");
  EXPECT_EQ(job["status"], "Running");
  EXPECT_EQ(job["restarts"], 1);
  EXPECT_EQ(job["max_restarts"], 5);
  EXPECT_EQ(job["round"], 1);
  EXPECT_EQ(job["master_pid"], nullptr) << "no master lives";
  EXPECT_EQ(job["exit_code"], nullptr) << "it runs";
  EXPECT_EQ(job["parameters"], "--enable-job-restart=True --max-num-of-job-restart=5");
  EXPECT_EQ(job["command"], json::array({"train"}));
  EXPECT_TRUE(job["reason_code"].is_string());
  EXPECT_TRUE(job["reason_message"].is_string());
  ExpectTime(job["create_time"]);
  ExpectTime(job["running_time"]);
  EXPECT_EQ(job["end_time"], nullptr);
  EXPECT_EQ(job["nodes"].size(), 2u);

  ASSERT_EQ(job["instances"].size(), 5u) << "four workers and the master";
  const json& worker = job["instances"][1];
  EXPECT_EQ(worker["name"], "dlc0123456789abc-worker-1");
  EXPECT_EQ(worker["role"], "worker");
  EXPECT_EQ(worker["index"], 1);
  EXPECT_TRUE(worker["node"].get<std::string>().starts_with("node-"));
  EXPECT_EQ(worker["status"], "Running");
  EXPECT_EQ(worker["attempt"], 1);
  EXPECT_EQ(worker["exit_code"], nullptr);
  EXPECT_EQ(worker["signal"], nullptr);
  EXPECT_EQ(
      worker["log_directory"],
      (directory_->path() / "nodes" / worker["node"].get<std::string>() / "dlc0123456789abc-worker-1" / "1").string());
  EXPECT_EQ(job["instances"][4]["name"], "dlc0123456789abc-aimaster-0");
}

TEST_F(JobJsonTest, AMasterThatLivesIsNamed) {
  Read();
  ASSERT_TRUE(directory_->WriteMasterAddress(
      {.host = "127.0.0.1", .port = 1, .pid = getpid(), .start_ticks = ProcessStartTicks(getpid())}));
  EXPECT_EQ(Get()["master_pid"], getpid());
  EXPECT_EQ(Get()["instances"][4]["status"], "Running");
}

TEST_F(JobJsonTest, LogsAreWhereTheJobWantedThem) {
  story_.spec.log_directory = "/logs";
  Read();
  EXPECT_EQ(Get()["instances"][0]["log_directory"], "/logs/dlc0123456789abc-worker-0/1");
}

TEST_F(JobJsonTest, ARecordSaysWhatFailedWhereAndWhy) {
  Read();
  const json records = RecordsJson(snapshot_);
  ASSERT_EQ(records.size(), 1u);
  const json& record = records[0];
  EXPECT_EQ(record["restarts"], 1);
  ExpectTime(record["restart_time"]);
  EXPECT_TRUE(record["node_name"].get<std::string>().starts_with("node-"));
  EXPECT_EQ(record["instance_name"], "dlc0123456789abc-worker-1");
  EXPECT_EQ(record["error_code"], 7);
  EXPECT_EQ(record["error_message"], "boom");
  EXPECT_EQ(record["error_source"], "process");
  EXPECT_NE(record["reason"], "");
  EXPECT_EQ(record["result"], "Restarted");
  EXPECT_TRUE(record["duration_ms"].is_number_integer());
  EXPECT_EQ(record["round"], 0);
  EXPECT_EQ(record["rank"], 1);
  EXPECT_EQ(record["scope"], "job");
  EXPECT_EQ(record["category"], "user");
  ASSERT_EQ(record["details"].size(), 1u);
  EXPECT_EQ(record["details"][0]["instance"], "dlc0123456789abc-worker-1");
  EXPECT_EQ(record["details"][0]["root"], true);
  EXPECT_EQ(record["details"][0]["isolated"], false);
}

TEST_F(JobJsonTest, WhereNoProcessEndedTheFaultIsTheCode) {
  Read();
  Judgement& judgement = snapshot_.records[0].judgement;
  judgement.error_code.reset();
  judgement.fault = "NodeLost";
  judgement.root_rank.reset();
  EXPECT_EQ(RecordsJson(snapshot_)[0]["error_code"], "NodeLost");
  EXPECT_EQ(RecordsJson(snapshot_)[0]["rank"], nullptr);
}

TEST_F(JobJsonTest, RoundsHaveTheirStages) {
  Read();
  const json rounds = RoundsJson(snapshot_);
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[0]["round"], 0);
  EXPECT_EQ(rounds[0]["result"], "Failed");
  ExpectTime(rounds[0]["start_time"]);
  ExpectTime(rounds[0]["end_time"]);
  EXPECT_EQ(rounds[1]["end_time"], nullptr) << "it runs";
  ASSERT_FALSE(rounds[1]["stages"].empty());
  for (const json& stage : rounds[1]["stages"]) {
    EXPECT_TRUE(stage["name"].is_string());
    ExpectTime(stage["start_time"]);
    EXPECT_TRUE(stage["duration_ms"].is_number_integer()) << stage;
  }
}

TEST_F(JobJsonTest, DecisionsComeWithTheirReasons) {
  Read();
  const json decisions = ExplainJson(decisions_);
  const auto restart = std::ranges::find_if(decisions, [](const json& d) { return d["decision"] == "Restart"; });
  ASSERT_NE(restart, decisions.end()) << decisions;
  EXPECT_EQ((*restart)["round"], 0);
  ExpectTime((*restart)["time"]);
  EXPECT_EQ((*restart)["reasons"][0], "rank 1 said boom");
}

TEST_F(JobJsonTest, ADamagedJobIsARowWithItsProblem) {
  Read();
  std::ofstream(directory_->spec()) << "{";
  const json list = ListJson(ListJobs(home_));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["job_id"], "dlc0123456789abc");
  EXPECT_NE(list[0]["problem"], "");
}

}  // namespace
}  // namespace aimaster
