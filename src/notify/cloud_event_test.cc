#include "notify/cloud_event.h"

#include <gtest/gtest.h>

#include "journal/journal_harness.h"
#include "notify/message_reader.h"
#include "notify/talk.h"

namespace aimaster::notify {
namespace {

using nlohmann::json;

// A job that was restarted once, as its journal has it.
class ToldEventTest : public testing::Test {
 protected:
  ToldEventTest() : job_(RestartedJob()), directory_(*JobDirectory::Create(home_, job_.spec)) {
    const Played played = Play(job_.inputs);
    Result<Journal> journal = Journal::OpenOrCreate(directory_.journal(), "rules");
    EXPECT_TRUE(journal->Append(played.batch, played.engine.job()));
    reader_.emplace(*JobReader::Open(directory_));
  }
  NumberedEvent Find(const std::string& type) {
    const std::vector<NumberedEvent> events = reader_->ReadEventsAfter(0).value();
    for (const NumberedEvent& event : events) {
      if (event.event.type == type) return event;
    }
    ADD_FAILURE() << "no " << type;
    return {};
  }

  TemporaryDirectory place_;
  const Home home_{place_ / "home"};
  const EngineHarness job_;
  const JobDirectory directory_;
  std::optional<JobReader> reader_;
};

TEST_F(ToldEventTest, ARestartSaysWhoWasFirstWhatWasDecidedAndHowToLook) {
  const Message message = MessageReader(directory_, job_.spec).Read(*reader_, Find("aimaster.round.restarting"));
  EXPECT_EQ(message.title, "Automatic Fault Tolerance");
  EXPECT_EQ(message.job_name, "story");
  std::map<std::string, std::string> facts;
  for (const Fact& fact : message.facts) facts[fact.label] = fact.text;
  EXPECT_EQ(facts["first"], "rank 1 said boom");
  EXPECT_EQ(facts["where"], "rank 1, dlc0123456789abc-worker-1 on node-0");
  EXPECT_TRUE(facts["decision"].starts_with("Restart: ")) << facts["decision"];
  EXPECT_EQ(message.look, "aimaster explain dlc0123456789abc");
}

TEST_F(ToldEventTest, AnEventWithoutADecisionSaysWhatItSays) {
  const NumberedEvent started = Find("aimaster.round.started");
  const Message message = MessageReader(directory_, job_.spec).Read(*reader_, started);
  EXPECT_TRUE(message.facts.empty());
  EXPECT_EQ(message.text, started.event.message);
}

TEST_F(ToldEventTest, AnEventIsACloudEvent) {
  const NumberedEvent started = Find("aimaster.round.started");
  const json event = CloudEvent(job_.spec, started);
  for (const char* required : {"specversion", "id", "source", "type"}) EXPECT_TRUE(event[required].is_string());
  EXPECT_EQ(event["specversion"], "1.0");
  EXPECT_EQ(event["id"], "dlc0123456789abc-" + std::to_string(started.number));
  EXPECT_EQ(event["data"]["number"], started.number);
  EXPECT_EQ(event["data"]["message"], started.event.message);
  EXPECT_FALSE(event.contains("subject")) << "the job itself";
}

TEST_F(ToldEventTest, BytesThatAreNoTextStopNothing) {
  const NumberedEvent odd{5, {.at = {}, .type = "aimaster.custom.message", .subject = "w\xff", .message = "a\nb\xfe"}};
  EXPECT_NE(OneLineOf(CloudEvent(job_.spec, odd)).find("\\n"), std::string::npos);
  const Message message = MessageOf(job_.spec, odd);
  EXPECT_EQ(message.text, "a b?");
}

TEST(MessageTest, ALongTextIsCutBetweenCharacters) {
  EXPECT_EQ(CutTo("abc", 3), "abc");
  EXPECT_EQ(CutTo("abcdef", 5), "ab…");
  EXPECT_EQ(CutTo("éééé", 6), "é…");
  EXPECT_EQ(CutTo("abcdef", 1), "…");
}

TEST(TalkTest, WhatACourierSaysIsUnderstood) {
  const OutboxMark mark{.kind = OutboxMark::Kind::kGaveUp,
                        .sink = "ops",
                        .position = 17,
                        .events = 3,
                        .answer = "500: \"no\"\n",
                        .at = {}};
  const std::optional<CourierSays> said = DecodeCourierSays(Encode(CourierSays(mark)));
  ASSERT_TRUE(said && std::holds_alternative<OutboxMark>(*said));
  EXPECT_EQ(std::get<OutboxMark>(*said).answer, mark.answer);
  EXPECT_EQ(std::get<OutboxMark>(*said).kind, mark.kind);
  EXPECT_EQ(Encode(CourierSays(mark)).find('\n'), Encode(CourierSays(mark)).size() - 1) << "one line";
  EXPECT_TRUE(DecodeCourierSays(R"({"ready": 5})"));
  for (const char* odd : {"", "{}", "x", R"({"mark": "Lost", "sink": "a"})", R"({"ready": "soon"})", R"({"log": 3})"}) {
    EXPECT_FALSE(DecodeCourierSays(odd)) << odd;
  }
}

}  // namespace
}  // namespace aimaster::notify
