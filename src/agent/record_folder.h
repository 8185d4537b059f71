// Where the ranks of an attempt record what they communicate (probe/record.h): a folder in memory, named by the
// attempt's directory, so that whichever agent looks after the attempt finds it.
//
// The attempt's own directory was rejected for it: on a file server, or while a disk writes a page back, a rank that
// adds one to a counter would have to wait.
#pragma once

#include <string>

#include "agent/attempt_files.h"
#include "core/error.h"

namespace aimaster::agent {

std::string RecordFolderOf(const AttemptDirectory& attempt);
// The folder, empty, for an attempt that is about to start.
Status MakeRecordFolder(const AttemptDirectory& attempt);
// Once nothing of the attempt runs any more.
void RemoveRecordFolder(const AttemptDirectory& attempt);
// Those of this user whose attempt's directory is gone: no agent will ever look after them.
void SweepRecordFolders();

}  // namespace aimaster::agent
