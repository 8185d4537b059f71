#include "detect/log_speaker.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "detect/line_text.h"

namespace aimaster {
namespace {

constexpr size_t kHeadBytes = 256;  // who speaks stands at the beginning
constexpr std::string_view kDigits = "0123456789";

// The number at the start of text; none where there is none, or one that is no rank.
std::optional<uint32_t> NumberAt(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr uint32_t kRankMax = 10'000'000;
  return error == std::errc() && end != text.data() && number <= kRankMax ? std::optional(number) : std::nullopt;
}

std::optional<uint32_t> WholeNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos ? NumberAt(text) : std::nullopt;
}

// `process` is "node-2:915", or the host alone.
Speaker LocalSpeaker(std::string_view process, uint32_t number) {
  return {.kind = Speaker::Kind::kLocal,
          .number = number,
          .host = std::string(process.substr(0, process.find(':'))),
          .name = std::string(process) + (process.empty() ? "" : " ") + "[" + std::to_string(number) + "]"};
}

// Kinds of instance whose numbers are those of ranks, as long as there is one kind of them alone.
bool CountsRanks(std::string_view stem) {
  constexpr std::array<std::string_view, 7> kStems{"worker", "rank", "trainer", "task", "process", "proc", "replica"};
  while (!stem.empty() && (stem.back() == '-' || stem.back() == '_')) stem.remove_suffix(1);
  const size_t last_word = stem.find_last_of("-_/") + 1;  // npos + 1 is 0
  return std::find(kStems.begin(), kStems.end(), stem.substr(last_word)) != kStems.end();
}

Speaker NamedSpeaker(std::string_view name) {
  const size_t stem = name.find_last_not_of(kDigits) + 1;
  const auto number = WholeNumber(name.substr(stem));
  if (number && CountsRanks(name.substr(0, stem))) {
    return {.kind = Speaker::Kind::kMember,
            .number = *number,
            .stem = std::string(name.substr(0, stem)),
            .name = std::string(name)};
  }
  return {.kind = Speaker::Kind::kNamed, .name = std::string(name)};
}

// "[rank3]:", "[rank: 3]", "[1,3]<stderr>:", "[0]<stdout>:", "[3]" (MPICH), wherever in the label.
std::optional<uint32_t> RankInLabel(std::string_view label) {
  for (std::string_view opening : {"[rank: ", "[rank ", "[Rank ", "[rank"}) {
    if (const size_t at = label.find(opening); at != std::string_view::npos) {
      if (const auto number = NumberAt(label.substr(at + opening.size()))) return number;
    }
  }
  if (const size_t stream = label.find("]<std"); stream != std::string_view::npos) {
    const size_t begin = label.find_last_of("[,", stream);
    if (begin != std::string_view::npos) return NumberAt(label.substr(begin + 1));
  }
  const size_t open = label.find('[');
  if (open == std::string_view::npos) return std::nullopt;
  const size_t close = label.find(']', open);
  return close == std::string_view::npos ? std::nullopt : WholeNumber(label.substr(open + 1, close - open - 1));
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kAround = " \t:|";
  const size_t begin = text.find_first_not_of(kAround);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kAround) - begin + 1);
}

// "[pod/worker-0/main]" → "worker-0".
std::string_view PodName(std::string_view label) {
  constexpr std::string_view kOpening = "[pod/";
  if (!label.starts_with(kOpening)) return label;
  label.remove_prefix(kOpening.size());
  return label.substr(0, label.find_first_of("/]"));
}

Speaker FromLabel(std::string_view label) {
  if (const auto rank = RankInLabel(label)) return RankSpeaker(*rank);
  constexpr std::string_view kDefault = "[default";
  if (const size_t at = label.find(kDefault); at != std::string_view::npos) {
    if (const auto number = NumberAt(label.substr(at + kDefault.size()))) {
      return LocalSpeaker(Trim(label.substr(0, at)), *number);
    }
  }
  const std::string_view name = Trim(PodName(Trim(label)));
  if (const auto task = WholeNumber(name)) return RankSpeaker(*task);  // srun --label
  return NamedSpeaker(name);
}

// "node-2:915:917 [3] misc/socket.cc:47 NCCL WARN …": host, process, thread, device.
std::optional<Speaker> FromNcclLine(std::string_view text) {
  if (text.find(" NCCL ") == std::string_view::npos) return std::nullopt;
  for (size_t open = text.find(" ["); open != std::string_view::npos; open = text.find(" [", open + 1)) {
    const size_t close = text.find(']', open);
    if (close == std::string_view::npos) return std::nullopt;
    const auto device = WholeNumber(text.substr(open + 2, close - open - 2));
    const size_t begin = text.find_last_of(" \t]", open - (open > 0 ? 1 : 0)) + 1;
    const std::string_view place = text.substr(begin, open - begin);
    const size_t thread = place.rfind(':');
    const size_t process = thread == std::string_view::npos || thread == 0 ? thread : place.rfind(':', thread - 1);
    if (!device || process == std::string_view::npos) continue;
    if (!WholeNumber(place.substr(thread + 1)) || !WholeNumber(place.substr(process + 1, thread - process - 1)))
      continue;
    return LocalSpeaker(place.substr(0, thread), *device);
  }
  constexpr std::string_view kShort = "[";  // "[3] include/shm.h:28 NCCL WARN"
  if (!text.starts_with(kShort)) return std::nullopt;
  const auto device = WholeNumber(text.substr(1, text.find(']') - 1));
  return device ? std::optional(LocalSpeaker("", *device)) : std::nullopt;
}

// "[E ProcessGroupNCCL.cpp:563] [Rank 5] Watchdog …", "[PG ID 0 PG GUID 0(default_pg) Rank 5]": in another group than
// that of the whole job the number is another one.
std::optional<Speaker> FromProcessGroup(std::string_view text) {
  const bool is_of_group =
      text.find("ProcessGroup") != std::string_view::npos || text.find("atchdog") != std::string_view::npos;
  if (!is_of_group) return std::nullopt;
  constexpr std::string_view kAlone = "[Rank ";
  if (const size_t at = text.find(kAlone); at != std::string_view::npos) {
    const auto number = NumberAt(text.substr(at + kAlone.size()));
    return number ? std::optional(RankSpeaker(*number)) : std::nullopt;
  }
  const size_t group = text.find("[PG ");
  if (group == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text.substr(group, text.find(']', group) - group);
  const bool whole_job = inside.find("default_pg") != std::string_view::npos || inside.starts_with("[PG 0 ") ||
                         inside.starts_with("[PG ID 0 ");
  const size_t rank = inside.rfind(" Rank ");
  if (!whole_job || rank == std::string_view::npos) return std::nullopt;
  const auto number = NumberAt(inside.substr(rank + 6));
  return number ? std::optional(RankSpeaker(*number)) : std::nullopt;
}

// What stands before and behind the number of a rank that a line speaks of.
struct Naming {
  std::string_view before;
  std::string_view behind;  // any of these characters has to follow; empty: anything but a digit or a word
};
constexpr std::array kNamings = {
    Naming{"local_rank: ", ""},
    Naming{"--local-rank=", ""},
    Naming{"--local_rank=", ""},
    Naming{"process rank ", ""},
    Naming{"invoked on rank ", ""},
    Naming{": task ", ":"},
    Naming{": tasks ", ":"},
    Naming{"-- Process ", " "},
    Naming{"process ", " terminated with"},
    Naming{"on rank ", ""},
    Naming{"Rank ", ":"},
    Naming{"[Rank ", "]"},
    Naming{"[rank ", "]"},
    Naming{"[Rank: ", "]"},
    Naming{"(rank ", ")"},
    Naming{"[rank=", "]"},
    Naming{"RANK ", " PID"},
    Naming{"[rank:", "]"},
    Naming{"/job:jax_worker/replica:0/task:", ""},
};

bool IsWord(char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool Follows(std::string_view rest, std::string_view behind) {
  if (!behind.empty()) return behind.size() > 1 ? rest.starts_with(behind) : !rest.empty() && rest[0] == behind[0];
  return rest.empty() || !IsWord(rest[0]);
}

}  // namespace

Speaker SpeakerOf(std::string_view line) {
  std::string buffer;
  std::string_view head = line.substr(0, kHeadBytes);
  if (head.find('\x1b') != std::string_view::npos) head = CleanLine(head, buffer);
  const auto [label, text] = SplitRankLabels(head);
  if (!label.empty()) return FromLabel(label);
  if (text.find('[') == std::string_view::npos) return {};  // as most lines; libraries say it in brackets
  if (const auto library = FromNcclLine(text)) return *library;
  if (const auto group = FromProcessGroup(text)) return *group;
  return {};
}

Speaker RankSpeaker(uint32_t number) {
  return {.kind = Speaker::Kind::kRank, .number = number, .name = "rank " + std::to_string(number)};
}

std::optional<uint32_t> RankOfTable(std::string_view line, std::optional<uint32_t> before) {
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view text = line.substr(begin);
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view label = Trim(text.substr(0, colon));
  if (label == "rank" && text.find("(local_rank: ") != std::string_view::npos)
    return NumberAt(Trim(text.substr(colon)));
  if (label == "Process name") {  // "[[20117,1],2]", "[prterun-h-1@1,3]"
    const std::string_view name = Trim(text.substr(colon));
    const size_t comma = name.rfind(',');
    const bool is_name = name.starts_with("[") && name.ends_with("]") && comma != std::string_view::npos;
    return is_name ? WholeNumber(name.substr(comma + 1, name.size() - comma - 2)) : std::nullopt;
  }
  if (label == "exitcode" || label == "error_file" || label == "traceback") return before;
  return std::nullopt;
}

std::optional<uint32_t> RankNamedIn(std::string_view line) {
  std::optional<uint32_t> named;
  for (const Naming& naming : kNamings) {
    for (size_t at = line.find(naming.before); at != std::string_view::npos; at = line.find(naming.before, at + 1)) {
      const bool begins_word = at == 0 || !IsWord(naming.before[0]) || !IsWord(line[at - 1]);
      const std::string_view rest = line.substr(at + naming.before.size());
      const auto number = NumberAt(rest);
      if (!begins_word || !number ||
          !Follows(
              rest.substr(rest.find_first_not_of(kDigits) == std::string_view::npos ? rest.size()
                                                                                    : rest.find_first_not_of(kDigits)),
              naming.behind)) {
        continue;
      }
      if (named && *named != *number) return std::nullopt;
      named = number;
    }
  }
  return named;
}

std::optional<RankFile> RankFileOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view base = slash == std::string_view::npos ? path : path.substr(slash + 1);
  constexpr std::string_view kRank = "rank";
  for (std::string_view ending : {".out", ".err"}) {
    if (!base.starts_with(kRank) || !base.ends_with(ending) || base.size() <= kRank.size() + ending.size()) continue;
    const std::string_view name = base.substr(kRank.size(), base.size() - kRank.size() - ending.size());
    if (const auto number = WholeNumber(name)) return RankFile{number, "rank " + std::string(name)};
    return RankFile{std::nullopt, std::string(name)};
  }
  if ((base == "stdout.log" || base == "stderr.log") && slash != std::string_view::npos && slash > 0) {
    const size_t parent = path.rfind('/', slash - 1);
    const std::string_view folder = path.substr(parent + 1, slash - parent - 1);  // npos + 1 is 0
    if (const auto number = WholeNumber(folder)) return RankFile{number, "rank " + std::string(folder)};
  }
  return std::nullopt;
}

}  // namespace aimaster
