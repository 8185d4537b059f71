#include "agent/agent_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "agent/limits.h"

namespace aimaster::agent {

using nlohmann::json;

namespace {

// Texts are bytes, and JSON holds characters: each byte is one of the first 256.
json FormatTexts(const std::vector<std::string>& texts) {
  json list = json::array();
  for (const std::string& text : texts) {
    json bytes = json::array();
    for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
    list.push_back(std::move(bytes));
  }
  return list;
}

std::vector<std::string> ParseTexts(const json& list) {
  std::vector<std::string> texts;
  if (!list.is_array()) return texts;
  for (const json& bytes : list) {
    if (texts.size() == kRetryableTextsMax) break;
    if (!bytes.is_array() || bytes.empty() || bytes.size() > kRetryableTextMaxBytes) continue;
    std::string& text = texts.emplace_back();
    for (const json& byte : bytes) {
      text += static_cast<char>(byte.is_number_unsigned() ? byte.get<uint64_t>() & 0xFF : 0);
    }
  }
  return texts;
}

std::optional<HangSetting> ParseHang(const json& object) {
  if (!object.is_object() || !object.contains("interval_ms") || !object["interval_ms"].is_number_integer()) return {};
  if (!object.contains("set_at_ns") || !object["set_at_ns"].is_number_unsigned()) return {};
  if (!object.contains("round") || !object["round"].is_number_unsigned()) return {};
  HangSetting setting{.interval_ms = object["interval_ms"].get<int64_t>(),
                      .set_at_ns = object["set_at_ns"].get<uint64_t>(),
                      .round = static_cast<uint32_t>(object["round"].get<uint64_t>())};
  return setting.interval_ms >= kHangIntervalOffMs ? std::optional(setting) : std::nullopt;
}

}  // namespace

std::string FormatAgentFile(const AgentFile& file) {
  json hang = nullptr;
  if (file.hang_setting) {
    hang = {{"interval_ms", file.hang_setting->interval_ms},
            {"set_at_ns", file.hang_setting->set_at_ns},
            {"round", file.hang_setting->round}};
  }
  return json{{"pid", file.process.pid},
              {"start_ticks", file.process.start_ticks},
              {"boot_id", file.boot_id},
              {"greatest_epoch", file.greatest_epoch},
              {"orphan_timeout_ms", file.orphan_timeout_ms},
              {"log_max_bytes", file.log_max_bytes},
              {"socket", file.socket},
              {"retryable_errors", FormatTexts(file.retryable_errors)},
              {"hang_setting", hang}}
             .dump(-1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

std::optional<AgentFile> ParseAgentFile(std::string_view text) {
  if (text.size() > kSmallFileMaxBytes) return std::nullopt;
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  bool good = true;
  const auto number = [&](const char* name) -> uint64_t {
    const auto found = object.find(name);
    if (found != object.end() && found->is_number_unsigned()) return found->get<uint64_t>();
    good = false;
    return 0;
  };
  AgentFile file;
  file.process = {static_cast<pid_t>(number("pid")), number("start_ticks")};
  file.greatest_epoch = number("greatest_epoch");
  file.orphan_timeout_ms = static_cast<uint32_t>(number("orphan_timeout_ms"));
  file.log_max_bytes = number("log_max_bytes");
  const auto boot_id = object.find("boot_id");
  if (!good || boot_id == object.end() || !boot_id->is_string()) return std::nullopt;
  file.boot_id = boot_id->get<std::string>();
  const auto socket = object.find("socket");
  if (socket != object.end() && socket->is_string()) file.socket = socket->get<std::string>();
  if (object.contains("hang_setting")) file.hang_setting = ParseHang(object["hang_setting"]);
  if (object.contains("retryable_errors")) file.retryable_errors = ParseTexts(object["retryable_errors"]);
  return file;
}

Result<int> LockNode(const std::string& node_directory, int patience_ms) {
  constexpr int kRetryMs = 10;
  const std::string path = node_directory + "/agent.lock";
  // Never closed: closing any descriptor of the file would give the lock up.
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Fail(ErrorKind::kEnvironment, "cannot open " + path + ": " + std::strerror(errno));
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  for (int waited = 0; ::fcntl(fd, F_SETLK, &lock) != 0; waited += kRetryMs) {
    if (errno != EACCES && errno != EAGAIN && errno != EINTR) {
      return Fail(ErrorKind::kEnvironment, "cannot lock " + path + ": " + std::strerror(errno));
    }
    if (waited >= patience_ms)
      return Fail(ErrorKind::kFenced, "another agent serves this node: " + path + " is locked");
    ::poll(nullptr, 0, kRetryMs);
  }
  return fd;
}

bool HasLostNode(const std::string& node_directory, int lock) {
  struct stat ours{}, there{};
  if (::fstat(lock, &ours) != 0 || ::stat((node_directory + "/agent.lock").c_str(), &there) != 0) return false;
  return ours.st_dev != there.st_dev || ours.st_ino != there.st_ino;
}

}  // namespace aimaster::agent
