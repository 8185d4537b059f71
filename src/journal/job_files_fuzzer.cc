// Any bytes as spec.json and as master.json: an error, or something that can be used.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/check.h"
#include "engine/layout.h"
#include "journal/codec.h"
#include "journal/job_directory.h"

namespace aimaster {
namespace {

JobDirectory Made() {
  std::string pattern = std::filesystem::exists("/dev/shm") ? "/dev/shm/files-XXXXXX" : "/tmp/files-XXXXXX";
  CHECK(mkdtemp(pattern.data()) != nullptr);
  static std::string place = pattern;
  std::atexit([] { std::filesystem::remove_all(place); });
  JobSpec spec;
  spec.id = *JobId::Parse("dlc0123456789abc");
  spec.roles = {{Role::kWorker, 1, 1}};
  return *JobDirectory::Create(Home(pattern), spec);
}

}  // namespace
}  // namespace aimaster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aimaster;
  static const JobDirectory directory = Made();
  for (const char* name : {"spec.json", "master.json"}) {
    std::ofstream(directory.path() / name, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  if (const Result<JobSpec> spec = directory.ReadSpec(); spec) {
    if (WorldSize(*spec) < 100'000) CHECK(!LayOutInstances(*spec).empty());
    CHECK(DecodeJobSpec(EncodeJobSpec(*spec)) == *spec);
  } else {
    CHECK(!spec.error().message.empty());
  }
  const Result<MasterAddress> address = directory.ReadMasterAddress();
  CHECK(address || !address.error().message.empty());
  const Result<MasterAddress> live = directory.FindLiveMaster();
  CHECK(live || !live.error().message.empty());
  return 0;
}
