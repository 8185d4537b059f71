#include "notify/sender.h"

#include <algorithm>

namespace aimaster::notify {
namespace {

constexpr milliseconds kCommandLook{20};

}  // namespace

void Sender::Start(size_t sink, const Sink& spec, const Letter& letter, Wall now) {
  UnderWay& under_way = under_way_[sink];
  under_way = {};
  // Secrets are read at each try: whoever renews one mends the sink.
  Result<Revealed> revealed = RevealAll(spec);
  if (!revealed) {
    under_way.at_once = NotDelivered(revealed.error().message);
    return;
  }
  under_way.revealed = std::move(*revealed);
  if (spec.type == SinkType::kCommand) {
    under_way.command = std::make_unique<CommandRun>(spec, MakeCommandInput(letter));
  } else if (spec.type == SinkType::kSmtp) {
    exchange_.Mail(sink, spec, under_way.revealed, MakeMail(spec, letter));
  } else {
    const Result<HttpRequest> request = MakeHttpRequest(spec, under_way.revealed, letter, now);
    if (request) {
      exchange_.Post(sink, spec, under_way.revealed, *request);
    } else {
      under_way.at_once = NotDelivered(request.error().message);
    }
  }
}

std::vector<std::pair<size_t, Outcome>> Sender::Perform() {
  std::vector<std::pair<size_t, Outcome>> ended = exchange_.Perform();
  for (auto& [sink, under_way] : under_way_) {
    std::optional<Outcome> outcome = under_way.command ? under_way.command->Look() : under_way.at_once;
    if (outcome) ended.emplace_back(sink, std::move(*outcome));
  }
  for (auto& [sink, outcome] : ended) {
    outcome.answer = WithoutSecrets(std::move(outcome.answer), under_way_.at(sink).revealed);
    under_way_.erase(sink);
  }
  return ended;
}

void Sender::Wait(std::span<pollfd> descriptors, milliseconds at_most) {
  for (const auto& [sink, under_way] : under_way_) {
    if (under_way.at_once) return;
    if (under_way.command) at_most = std::min(at_most, kCommandLook);
  }
  exchange_.Wait(descriptors, at_most);
}

}  // namespace aimaster::notify
