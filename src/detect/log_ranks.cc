// Whose the voices of all files are: LogEvidence::Ranks().
#include <algorithm>
#include <set>
#include <utility>

#include "detect/log_evidence.h"
#include "detect/outlived.h"

namespace aimaster {
namespace {

// With the slash at its end.
std::string Folder(std::string_view path) { return std::string(path.substr(0, path.rfind('/') + 1)); }

std::string RankName(uint32_t number) { return "rank " + std::to_string(number); }

// The ranks that come together out of several files and voices, by a key that is the same for all that is one rank's.
class Gathering {
 public:
  LogRank& At(const std::string& key) {
    const auto [found, is_new] = places_.emplace(key, ranks_.size());
    if (is_new) ranks_.emplace_back();
    return ranks_[found->second];
  }

  LogRank& Add(const std::string& key, const std::string& name, std::optional<uint32_t> number,
               const LineScanner& scanner) {
    LogRank& rank = At(key);
    rank.number = number;
    rank.name = name;
    for (LineMatch& match : scanner.Matches()) {
      // One sign that the job went on is enough for a file: the last one of all its voices.
      if (match.rule != kWentOn) rank.matches.push_back(std::move(match));
    }
    if (sign_ && !rank.matches.empty() && rank.matches.back().file == sign_->file) {
      rank.matches.push_back(*std::exchange(sign_, nullptr));
    }
    // Of several files the one that holds the last words is, most often, the one named last: rank3.err after rank3.out.
    if (std::string last = scanner.last_error_line(); !last.empty()) rank.last_error_line = std::move(last);
    return rank;
  }

  // Whoever tells of something in the file of this sign gets it; null: there is none.
  void OfferSign(const LineMatch* sign) { sign_ = sign; }

  std::vector<LogRank> Take() { return std::move(ranks_); }

 private:
  const LineMatch* sign_ = nullptr;
  std::vector<LogRank> ranks_;
  std::map<std::string, size_t> places_;
};

// Which numbers that speakers of one file have are those of ranks.
class SpeakerNumbers {
 public:
  void Count(const Speaker& speaker) {
    switch (speaker.kind) {
      case Speaker::Kind::kRank:
        ++ranks_;
        return;
      case Speaker::Kind::kLocal:
        hosts_.insert(speaker.host);
        if (!local_.insert({speaker.host, speaker.number}).second) local_is_unique_ = false;
        return;
      case Speaker::Kind::kMember:
        stems_.insert(speaker.stem);
        return;
      case Speaker::Kind::kNamed:
        ++named_;
        return;
      case Speaker::Kind::kNobody:
        return;
    }
  }

  std::optional<uint32_t> Of(const Speaker& speaker) const {
    const auto number_if = [&speaker](bool is_rank) { return is_rank ? std::optional(speaker.number) : std::nullopt; };
    switch (speaker.kind) {
      case Speaker::Kind::kRank:
        return speaker.number;
      case Speaker::Kind::kLocal:  // on one host the numbers there are those of the job
        return number_if(hosts_.size() == 1 && local_is_unique_ && stems_.size() + named_ == 0);
      case Speaker::Kind::kMember:
        return number_if(ranks_ == 0 && hosts_.empty() && stems_.size() == 1 && named_ == 0);
      case Speaker::Kind::kNamed:
      case Speaker::Kind::kNobody:
        return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  size_t ranks_ = 0, named_ = 0;
  std::set<std::string> hosts_, stems_;
  std::set<std::pair<std::string, uint32_t>> local_;
  bool local_is_unique_ = true;
};

// Numbers for ranks of which only the place among the files is known. Numbers in names come first.
class Places {
 public:
  void Take(uint32_t number) { taken_.insert(number); }
  uint32_t Of(const std::string& key) {
    const auto [found, is_new] = numbers_.emplace(key, static_cast<uint32_t>(numbers_.size()));
    while (is_new && taken_.contains(found->second)) ++found->second;
    taken_.insert(found->second);
    return found->second;
  }

 private:
  std::map<std::string, uint32_t> numbers_;
  std::set<uint32_t> taken_;
};

}  // namespace

// Puts the voices of all files together.
class LogEvidence::Sorting {
 public:
  explicit Sorting(const std::list<File>& files) : is_one_file_(files.size() == 1) {
    for (const File& file : files) {
      if (!file.owner) continue;
      some_are_owned_ = true;
      folders_[file.owner->name].insert(Folder(file.path));
    }
    for (const File& file : files) {
      if (file.owner && file.owner->number && IsUnique(*file.owner)) places_.Take(*file.owner->number);
    }
  }

  void Add(const File& file) {
    const LineMatch* sign = nullptr;
    for (const Voice& voice : file.voices) {
      const LineMatch* other = voice.scanner.went_on();
      if (other && (!sign || other->offset > sign->offset)) sign = other;
    }
    gathering_.OfferSign(sign);
    if (file.owner) {
      AddOwned(file);
    } else if (IsOneSpeakers(file)) {
      AddUndivided(file);
    } else {
      AddVoices(file);
    }
  }

  std::vector<LogRank> Take() {
    std::vector<LogRank> ranks = gathering_.Take();
    // Lines that nobody owns and that tell nothing are no evidence of anything.
    const auto is_idle = [](const LogRank& rank) { return rank.is_nobody && rank.matches.empty(); };
    if (!std::all_of(ranks.begin(), ranks.end(), is_idle)) std::erase_if(ranks, is_idle);
    return ranks;
  }

 private:
  // The same name in several folders is not the same rank.
  bool IsUnique(const RankFile& owner) { return folders_[owner.name].size() == 1; }

  void AddOwned(const File& file) {
    const RankFile& owner = *file.owner;
    const bool is_unique = IsUnique(owner);
    const std::string name = is_unique ? owner.name : Folder(file.path) + owner.name;
    const uint32_t number = is_unique && owner.number ? *owner.number : places_.Of(name);
    gathering_.Add("owner " + name, name, number, file.voices.front().scanner);
  }

  // A file in which one rank alone speaks is that rank's. But where it is all that there is, and others say something
  // telling without a name, these may be a launcher that tells of other ranks.
  bool IsOneSpeakers(const File& file) const {
    if (file.voices.size() > 2) return false;
    if (file.voices.size() == 1 || !is_one_file_) return true;
    return file.voices.front().scanner.Matches().empty() || file.voices.back().scanner.Matches().empty();
  }

  void AddUndivided(const File& file) {
    const Speaker& speaker = file.voices.back().speaker;
    const bool is_rank = speaker.kind == Speaker::Kind::kRank;
    SpeakerNumbers numbers;
    numbers.Count(speaker);
    std::optional<uint32_t> number;
    if (is_rank || is_one_file_) number = numbers.Of(speaker);
    if (!number && !is_one_file_ && !some_are_owned_) number = places_.Of(file.path);
    const std::string name = is_rank ? speaker.name : file.path;
    for (const Voice& voice : file.voices) gathering_.Add(name, name, number, voice.scanner);
    gathering_.At(name).is_nobody = !is_rank && some_are_owned_;
  }

  void AddVoices(const File& file) {
    SpeakerNumbers numbers;
    for (const Voice& voice : file.voices) numbers.Count(voice.speaker);
    for (const Voice& voice : file.voices) {
      const Speaker& speaker = voice.speaker;
      // Numbers that hold in one file alone say nothing where there are several.
      const bool holds = speaker.kind == Speaker::Kind::kRank || is_one_file_;
      const bool is_nobody = speaker.kind == Speaker::Kind::kNobody;
      const std::optional<uint32_t> number = holds ? numbers.Of(speaker) : std::nullopt;
      const std::string name = number ? RankName(*number) : is_nobody ? file.path : speaker.name;
      const std::string key = is_nobody ? "nobody in " + name : holds ? name : name + " in " + file.path;
      LogRank& rank = gathering_.Add(key, name, number, voice.scanner);
      rank.is_nobody = is_nobody;
      rank.voices = std::max(rank.voices, static_cast<uint32_t>(file.voices.size()));
    }
  }

  const bool is_one_file_;
  bool some_are_owned_ = false;
  std::map<std::string, std::set<std::string>> folders_;  // by the name of the rank
  Places places_;
  Gathering gathering_;
};

std::vector<LogRank> LogEvidence::Ranks() const {
  Sorting sorting(files_);
  for (const File& file : files_) sorting.Add(file);
  return sorting.Take();
}

}  // namespace aimaster
