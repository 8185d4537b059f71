#include "journal/outbox.h"

#include "journal/job_reader.h"
#include "journal/journal_harness.h"

namespace aimaster {
namespace {

class OutboxTest : public testing::Test {
 protected:
  OutboxTest() : directory_(*JobDirectory::Create(home_, RestartedJob().spec)) {}
  Journal Open() { return std::move(*Journal::OpenOrCreate(directory_.journal(), "rules")); }
  std::vector<SinkProgress> Read() { return JobReader::Open(directory_)->ReadOutbox().value(); }
  static OutboxMark Mark(OutboxMark::Kind kind, int64_t position, int64_t events, const std::string& answer = "") {
    return {.kind = kind, .sink = "ops", .position = position, .events = events, .answer = answer, .at = {}};
  }

  TemporaryDirectory place_;
  const Home home_{place_ / "home"};
  const JobDirectory directory_;
};

TEST_F(OutboxTest, ASuccessorGoesOnWhereItsPredecessorStopped) {
  {
    Journal journal = Open();
    ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kDelivered, 3, 2)));
    ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kDelivered, 7, 1)));
  }
  const Journal successor = Open();
  const std::vector<SinkProgress> sinks = Read();
  ASSERT_EQ(sinks.size(), 1u);
  EXPECT_EQ(sinks[0].sink, "ops");
  EXPECT_EQ(sinks[0].position, 7);
  EXPECT_EQ(sinks[0].delivered, 3);
  EXPECT_EQ(sinks[0].gave_up, 0);
}

TEST_F(OutboxTest, NothingMovesAPositionBack) {
  Journal journal = Open();
  ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kDelivered, 9, 1)));
  ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kDelivered, 4, 1)));
  EXPECT_EQ(Read()[0].position, 9);
}

TEST_F(OutboxTest, WhatIsNotForASinkIsPassedAndChangesNothingElse) {
  Journal journal = Open();
  ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kPassed, 4, 0)));
  EXPECT_EQ(Read()[0].position, 4);
  ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kGaveUp, 5, 1, "503: away")));
  ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kPassed, 9, 0)));
  ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kPassed, 7, 0)));
  EXPECT_EQ(Read()[0].position, 9);
  EXPECT_EQ(Read()[0].delivered, 0);
  EXPECT_EQ(Read()[0].gave_up, 1);
  EXPECT_EQ(Read()[0].trouble, "503: away");
}

TEST_F(OutboxTest, WhatIsGivenUpIsAnEvent) {
  Journal journal = Open();
  ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kGaveUp, 5, 3, "503: away")));
  const std::vector<NumberedEvent> events = JobReader::Open(directory_)->ReadEventsAfter(0).value();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event.type, kGaveUpEvent);
  EXPECT_EQ(events[0].event.subject, "ops");
  EXPECT_EQ(events[0].event.message,
            "3 events up to number 5 could not be delivered to sink 'ops', and are given up: 503: away");
  EXPECT_EQ(Read()[0].gave_up, 3);
  EXPECT_EQ(Read()[0].trouble, "503: away");
}

TEST_F(OutboxTest, TroubleIsKnownUntilTheSinkTakesMessagesAgain) {
  Journal journal = Open();
  ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kTrouble, 0, 0, "connection refused")));
  EXPECT_EQ(Read()[0].trouble, "connection refused");
  EXPECT_EQ(Read()[0].position, 0);
  ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kDelivered, 2, 1)));
  EXPECT_EQ(Read()[0].trouble, "");
}

TEST_F(OutboxTest, AMasterThatWasReplacedMarksNothing) {
  Journal old = Open();
  Journal successor = Open();
  const Status refused = old.Mark(Mark(OutboxMark::Kind::kDelivered, 3, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kFenced);
  EXPECT_TRUE(Read().empty());
}

TEST_F(OutboxTest, MarksAndDecisionsShareAJournal) {
  const EngineHarness job = RestartedJob();
  const Played played = Play(job.inputs);
  Journal journal = Open();
  ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kDelivered, 0, 0)));
  ASSERT_TRUE(journal.Append(played.batch, played.engine.job()));
  ASSERT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kDelivered, 1, 1)));
  EXPECT_TRUE(journal.Check());
  EXPECT_EQ(journal.LoadInputs().value(), job.inputs);
}

TEST_F(OutboxTest, AJournalOfAnOlderVersionHasNoOutbox) {
  {
    const Journal journal = Open();
  }
  Sql(directory_.journal(), "DROP TABLE outbox");
  EXPECT_TRUE(Read().empty());
  Journal journal = Open();
  EXPECT_TRUE(journal.Mark(Mark(OutboxMark::Kind::kDelivered, 1, 1)));
}

}  // namespace
}  // namespace aimaster
