// MessageReader: a message with what stands behind its event: the judgement that the decision rests on, the line that
// told, and the advice of the rule. All of it is in the journal; the engine is not asked.
#pragma once

#include "core/error.h"
#include "detect/rules_in_force.h"
#include "journal/job_directory.h"
#include "journal/job_reader.h"
#include "notify/message.h"

namespace aimaster::notify {

class MessageReader {
 public:
  // Where the job's rules can't be read, the advice is that of the built-in ones.
  MessageReader(const JobDirectory& directory, const JobSpec& spec);

  // A journal that can't be read takes nothing away from what the event itself says.
  Message Read(JobReader& reader, const NumberedEvent& event) const;

 private:
  void AddReasons(const JobSnapshot& snapshot, const Explanation& explanation, Message& message) const;

  const JobDirectory& directory_;
  const JobSpec& spec_;
  Result<RulesInForce> rules_;
};

// Whether a decision stands behind events of this type, which is worth looking up.
bool RestsOnDecision(std::string_view event_type);

}  // namespace aimaster::notify
