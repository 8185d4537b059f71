#include "notify/message.h"

#include "core/character_border.h"
#include "core/quote.h"
#include "journal/text_json.h"
#include "notify/limits.h"

namespace aimaster::notify {
Message MessageOf(const JobSpec& spec, const NumberedEvent& event) {
  const std::string id = spec.id.text();
  return {.number = event.number,
          .time = event.event.at.wall,
          .type = event.event.type,
          .title = TitleOf(event.event.type),
          .severity = SeverityOf(event.event.type),
          .job_id = id,
          .job_name = Readable(spec.name, kLineMaxBytes),
          .subject = Readable(event.event.subject, kLineMaxBytes),
          .text = Readable(event.event.message, kLineMaxBytes),
          .facts = {},
          .look = id.empty() ? "" : "aimaster explain " + id};
}

std::string IdOf(const Letter& letter) {
  std::string id = letter.message.job_id + "-" + std::to_string(letter.first);
  if (letter.last != letter.first) id += "-" + std::to_string(letter.last);
  return id;
}

std::string Headline(const Letter& letter) {
  const Message& message = letter.message;
  std::string line = "[" + std::string(Name(message.severity)) + "] " + message.title + ": " + message.job_name;
  if (!message.job_id.empty()) line += " (" + message.job_id + ")";
  if (letter.more > 0) line += " and " + std::to_string(letter.more) + " more";
  return line;
}

std::string MoreText(const Letter& letter) {
  if (letter.more == 0) return "";
  std::string text = "and " + std::to_string(letter.more) + " more: ";
  size_t shown = 0, counted = 0;
  for (const auto& [title, count] : letter.kinds) {
    if (shown == kKindsShown) break;
    text += (shown == 0 ? "" : ", ") + std::to_string(count) + " × " + title;
    counted += count;
    ++shown;
  }
  if (counted < letter.more) text += ", " + std::to_string(letter.more - counted) + " others";
  return text;
}

std::vector<Fact> BodyOf(const Letter& letter) {
  const Message& message = letter.message;
  std::vector<Fact> body;
  body.push_back({"", message.text});
  if (!message.subject.empty()) body.push_back({"about", message.subject});
  body.insert(body.end(), message.facts.begin(), message.facts.end());
  if (letter.more > 0) body.push_back({"", MoreText(letter)});
  if (!message.look.empty()) body.push_back({"look", message.look});
  return body;
}

std::string CutTo(std::string_view text, size_t max_bytes) {
  constexpr std::string_view kCut = "…";
  if (text.size() <= max_bytes) return std::string(text);
  const size_t end = CharacterBorder(text, max_bytes < kCut.size() ? 0 : max_bytes - kCut.size());
  return std::string(text.substr(0, end)) + std::string(kCut);
}

std::string Readable(std::string_view text, size_t max_bytes) {
  std::string line = CutTo(text, max_bytes);
  if (IsPrintable(line)) return line;
  const bool is_utf8 = IsUtf8(line);
  for (char& c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7F) c = ' ';
    if (byte > 0x7F && !is_utf8) c = '?';
  }
  return IsPrintable(line) ? line : Printable(line);  // UTF-8 has control characters beyond ASCII
}

}  // namespace aimaster::notify
