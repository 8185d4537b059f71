#include "sim/journal_disk.h"

#include "core/check.h"
#include "core/fnv1a.h"
#include "journal/codec.h"

namespace aimaster::sim {

Result<Epoch> JournalDisk::Open() {
  if (is_full) return Fail(ErrorKind::kEnvironment, "disk full");
  return Epoch{++epoch_};
}

Result<std::vector<const JournalDisk::Entry*>> JournalDisk::Append(Epoch epoch, const JournalBatch& batch) {
  if (Value(epoch) != epoch_) return Fail(ErrorKind::kFenced, "another master has taken this job over");
  if (is_full) return Fail(ErrorKind::kEnvironment, "disk full");
  std::vector<const Entry*> added;
  for (const auto& [input, result] : batch) {
    if (broken_ == Break::kForgetTick && std::holds_alternative<Tick>(input.event)) continue;
    auto entry = std::make_unique<Entry>();
    entry->epoch = epoch_;
    entry->input = EncodeInput(input);
    for (const Decision& decision : result.decisions) entry->decisions.push_back(Encode(decision));
    Result<Input> decoded = DecodeInput(entry->input);
    CHECK(decoded);
    CHECK(*decoded == input);
    entry->decoded = std::move(*decoded);
    added.push_back(entry.get());
    entries_.push_back(std::move(entry));
  }
  return added;
}

uint64_t JournalDisk::Digest() const {
  uint64_t digest = kFnv1aOfNothing;
  const auto add = [&digest](const std::string& text) { digest = Fnv1a(text, digest); };
  for (const auto& entry : entries_) {
    add(std::to_string(entry->epoch));
    add(entry->input);
    for (const std::string& decision : entry->decisions) add(decision);
  }
  return digest;
}

}  // namespace aimaster::sim
