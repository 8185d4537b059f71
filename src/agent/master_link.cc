#include "agent/master_link.h"

#include <sys/stat.h>

#include <optional>

#include "agent/log.h"
#include "agent/master_file.h"
#include "agent/small_file.h"
#include "wire/stream.h"

namespace aimaster::agent {
namespace {

std::optional<MasterWhereabouts> ReadWhereabouts(const std::string& job_directory) {
  const auto text = ReadSmallFile(job_directory + "/master.json", kSmallFileMaxBytes);
  return text ? ParseMasterFile(*text) : std::nullopt;
}

std::string ReadToken(const std::string& job_directory) {
  return ParseTokenFile(ReadSmallFile(job_directory + "/token", kTokenMax).value_or(""));
}

}  // namespace

MasterLink::MasterLink(boost::asio::io_context& io, std::string job_directory, Callbacks callbacks)
    : io_(io), job_directory_(std::move(job_directory)), callbacks_(std::move(callbacks)), wait_(io), silence_(io) {}

MasterLink::FileVersion MasterLink::AddressVersion() const {
  struct stat status{};
  if (::stat((job_directory_ + "/master.json").c_str(), &status) != 0) return {};
  return {status.st_ino, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

void MasterLink::Dial() {
  if (closed_for_good_) return;
  dialled_ = AddressVersion();
  const auto address = ReadWhereabouts(job_directory_);
  const std::string token = ReadToken(job_directory_);
  if (!address || token.empty()) {
    OnClose(address ? "there is no token in " + job_directory_
                    : "there is no address of a master in " + job_directory_);
    return;
  }
  client_ = std::make_unique<WebSocketClient>(
      io_, WebSocketTarget{address->host, address->port, "/agent", token, address->tls_fingerprint},
      WebSocketClient::Callbacks{
          // Over loopback both ends read the same clock.
          .on_open = [this, same_machine = IsLoopback(address->host)] { OnOpen(same_machine); },
          .on_message = [this](std::string_view message) { OnMessage(message); },
          .on_close = [this](const std::string& reason) { OnClose(reason); },
      });
}

void MasterLink::OnOpen(bool same_machine) {
  is_open_ = true;
  last_heard_ = std::chrono::steady_clock::now();
  WatchSilence(kWelcomeMax, "no Welcome");
  callbacks_.on_open(same_machine);
}

void MasterLink::OnMessage(std::string_view message) {
  last_heard_ = std::chrono::steady_clock::now();
  callbacks_.on_message(message);
}

void MasterLink::OnWelcome() {
  backoff_.Reset();
  last_failure_.clear();
  WatchSilence(kMasterSilentMax, "no word");
}

void MasterLink::WatchSilence(Duration max, const char* what) {
  const Duration silent = std::chrono::steady_clock::now() - last_heard_;
  if (silent >= max) {
    HangUp(std::string(what) + " from the master for " + FormatDuration(silent));
  } else {
    silence_.After(max - silent, [this, max, what] { WatchSilence(max, what); });
  }
}

void MasterLink::Send(std::string message) {
  if (client_ && is_open_) client_->Send(std::move(message));
}

void MasterLink::HangUp(const std::string& reason) {
  if (!client_ || closed_for_good_) return;
  client_.reset();
  OnClose(reason);
}

void MasterLink::OnClose(const std::string& reason) {
  silence_.Cancel();
  if (closed_for_good_) {
    closed_for_good_();
    return;
  }
  if (reason != last_failure_) LogWarning("no connection to the master: " + reason);
  last_failure_ = reason;
  if (std::exchange(is_open_, false)) callbacks_.on_close(reason);
  if (!closed_for_good_) Wait(backoff_.Next(random_()));
}

void MasterLink::Wait(Duration left) {
  const Duration slice = std::min<Duration>(left, kAddressPoll);
  wait_.After(slice, [this, left, slice] {
    if (left <= slice || AddressVersion() != dialled_) {
      Dial();
    } else {
      Wait(left - slice);
    }
  });
}

void MasterLink::Close(std::function<void()> done) {
  wait_.Cancel();
  silence_.Cancel();
  if (!client_ || !is_open_) {
    client_.reset();
    closed_for_good_ = [] {};
    done();
    return;
  }
  closed_for_good_ = std::move(done);
  client_->Close();
}

}  // namespace aimaster::agent
