#include <algorithm>
#include <nlohmann/json.hpp>

#include "stacks/dump_parsers.h"

namespace aimaster::stacks {
namespace {

using nlohmann::json;

std::string_view Text(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

uint64_t Number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

bool Flag(const json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

Frame ToFrame(const json& object) {
  const std::string_view function = Text(object, "name");
  const uint64_t line = Number(object, "line");
  Frame frame{.function = CleanName(function),
              .file = CleanName(Text(object, "filename")),
              .line = line < UINT32_MAX ? static_cast<uint32_t>(line) : 0};
  if (const auto module = object.find("module"); module != object.end() && module->is_string()) {
    frame.language = Language::kNative;
    if (function.starts_with("0x")) frame.function = "?";  // an address, another one in each process
  }
  if (frame.function.empty()) frame.function = "?";
  return frame;
}

Thread ToThread(const json& object) {
  Thread thread{.id = Number(object, "os_thread_id"),
                .name = CleanName(Text(object, "thread_name")),
                .is_waiting = !Flag(object, "active", true),
                .holds_gil = Flag(object, "owns_gil", false)};
  if (thread.id == 0) thread.id = Number(object, "thread_id");
  const auto frames = object.find("frames");
  if (frames == object.end() || !frames->is_array()) return thread;
  for (auto frame = frames->rbegin(); frame != frames->rend(); ++frame) {
    if (frame->is_object()) thread.frames.push_back(ToFrame(*frame));
  }
  BoundFrames(thread.frames);
  return thread;
}

}  // namespace

std::vector<ProcessDump> ParsePySpyJson(std::string_view text) {
  const json threads = json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<ProcessDump> dumps;
  if (!threads.is_array()) return dumps;
  for (const json& object : threads) {
    if (!object.is_object() || !object.contains("frames")) continue;
    const uint64_t number = Number(object, "pid");
    const auto pid = static_cast<uint32_t>(number <= INT32_MAX ? number : 0);
    auto dump = std::ranges::find(dumps, pid, &ProcessDump::pid);
    if (dump == dumps.end()) {
      if (dumps.size() == kProcessesPerDumpMax) break;
      dump = dumps.insert(dumps.end(), {.pid = pid, .command = {}, .threads = {}});
    }
    if (dump->threads.size() < kThreadsPerProcessMax) dump->threads.push_back(ToThread(object));
  }
  return dumps;
}

}  // namespace aimaster::stacks
