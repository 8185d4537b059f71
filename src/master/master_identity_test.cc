#include "master/master_identity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "journal/temporary_directory.h"

namespace aimaster {
namespace {

class MasterIdentityTest : public ::testing::Test {
 protected:
  MasterIdentityTest() {
    spec_.id = JobId::FromRandom(7);
    spec_.command = {"true"};
  }
  JobDirectory Directory() { return JobDirectory::Create(Home(folder_.path() / "home"), spec_).value(); }

  TemporaryDirectory folder_;
  JobSpec spec_;
};

TEST_F(MasterIdentityTest, LoopbackIsClearTextUnlessThereIsACertificate) {
  const JobDirectory directory = Directory();
  EXPECT_EQ(FindMasterIdentity(spec_, directory).value(), nullptr);
  const std::string own = folder_.path() / "own.pem";
  std::ofstream(own) << MakeSelfSignedPem().value();
  spec_.tls_certificate = spec_.tls_key = own;
  EXPECT_NE(FindMasterIdentity(spec_, directory).value(), nullptr);
  EXPECT_FALSE(std::filesystem::exists(directory.tls()));
}

TEST_F(MasterIdentityTest, BeyondLoopbackAPairIsMadeOnceAndKeptFromOthers) {
  spec_.listen_address = "0.0.0.0";
  const JobDirectory directory = Directory();
  const mode_t before = umask(0);
  const auto made = FindMasterIdentity(spec_, directory);
  umask(before);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(FindMasterIdentity(spec_, directory).value()->fingerprint(), (*made)->fingerprint());
  struct stat status{};
  ASSERT_EQ(stat((directory.tls() / "pair.pem").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  ASSERT_EQ(stat(directory.tls().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

TEST_F(MasterIdentityTest, ADamagedPairIsNeverReplacedBehindAnybodysBack) {
  spec_.listen_address = "0.0.0.0";
  const JobDirectory directory = Directory();
  ASSERT_TRUE(FindMasterIdentity(spec_, directory));
  std::ofstream(directory.tls() / "pair.pem") << "damaged";
  const auto found = FindMasterIdentity(spec_, directory);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("pair.pem"), std::string::npos) << found.error().message;
}

TEST_F(MasterIdentityTest, WhereItListensEverywhereItIsDialledOnLoopback) {
  EXPECT_EQ(AddressToDial("0.0.0.0"), "127.0.0.1");
  EXPECT_EQ(AddressToDial("::"), "::1");
  EXPECT_EQ(AddressToDial("10.1.2.3"), "10.1.2.3");
}

}  // namespace
}  // namespace aimaster
