// MasterIdentity: which certificate the job's master shows, and where it listens: the submitted certificate where there
// is one, a pair of the job's own beyond loopback, none on loopback, where nobody but the administrator can listen in.
#pragma once

#include <memory>
#include <string>

#include "core/error.h"
#include "core/job_spec.h"
#include "journal/job_directory.h"
#include "wire/tls.h"

namespace aimaster {

// Null: clear text. A pair of the job's own is made once and found again by every later master of the job.
Result<std::shared_ptr<const TlsIdentity>> FindMasterIdentity(const JobSpec& spec, const JobDirectory& directory);

// What agents on this machine are to dial when the master listens on this address.
std::string AddressToDial(const std::string& listen_address);

}  // namespace aimaster
