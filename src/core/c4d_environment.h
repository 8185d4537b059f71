// The environment of C4D: the settings that --c4d-common-envs takes, and their values. They are checked when the job is
// submitted; a setting that C4D finds unreadable hours later, in the middle of a hang, would come too late.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/time.h"

namespace aimaster {

struct C4dSetting {
  std::string_view name;  // "C4D_HANG_TIMEOUT"
  std::string_view allowed;
  std::string_view default_text;
  std::string_view help;
  bool (*accepts)(std::string_view value);
};

std::span<const C4dSetting> C4dSettings();
const C4dSetting* FindC4dSetting(std::string_view name);

// What is set, or else the default of that setting, which has to be one.
std::string_view C4dSettingIn(const std::map<std::string, std::string>& settings, std::string_view name);

// "10", "10s", "500ms", "2min", "10000000": a bare number from 1000000 up counts microseconds, a smaller one seconds.
Result<Duration> ParseC4dTime(std::string_view text);

// "18": how many times C4D_HANG_TIMEOUT, at least once.
Result<uint32_t> ParseC4dTimes(std::string_view text);

}  // namespace aimaster
