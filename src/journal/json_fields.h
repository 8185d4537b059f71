// JsonFields: structs to JSON and back by one list of fields per type, so that what is written and what is read can't
// drift apart:
//
//   template <typename Visitor>
//   void Fields(Visitor& v, LineMatch& m) { v("rule", m.rule); v("line", m.line); }
//
// Reading is strict about types and ranges, takes missing fields as their defaults and unknown ones as somebody else's:
// a journal is read by older and newer programs. Nothing throws across this border.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/ids.h"
#include "core/quote.h"
#include "core/time.h"
#include "journal/text_json.h"

namespace aimaster {

using nlohmann::json;

class JsonWriter;
class JsonReader;

template <typename T>
concept HasFields = requires(JsonReader& reader, T& value) { Fields(reader, value); };
template <typename T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) { std::string_view(Name(value)); };
// An id is stored as its number. A state is not: its name must survive a reordering of the enum.
template <typename T>
concept Id = std::is_enum_v<T> && !NamedEnum<T> && std::is_unsigned_v<std::underlying_type_t<T>>;

class JsonWriter {
 public:
  template <typename T>
  static json Encode(const T& value) {
    if constexpr (std::is_same_v<T, JobId>) {
      return value.text();
    } else if constexpr (NamedEnum<T>) {
      return Name(value);
    } else if constexpr (Id<T>) {
      return std::to_underlying(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return TextToJson(value);
    } else if constexpr (std::is_same_v<T, Monotonic>) {
      return value.since_origin.count();
    } else if constexpr (std::is_same_v<T, Wall>) {
      return value.since_epoch.count();
    } else if constexpr (requires {
                           typename T::period;
                           value.count();
                         }) {
      return value.count();
    } else if constexpr (HasFields<T>) {
      json object = json::object();
      JsonWriter writer(object);
      Fields(writer, const_cast<T&>(value));  // a writer only looks
      return object;
    } else if constexpr (requires {
                           value.has_value();
                           *value;
                         }) {
      return value ? Encode(*value) : json(nullptr);
    } else if constexpr (requires { typename T::mapped_type; }) {
      json array = json::array();
      for (const auto& [key, mapped] : value) array.push_back(json::array({Encode(key), Encode(mapped)}));
      return array;
    } else if constexpr (requires {
                           value.begin();
                           value.end();
                         }) {
      json array = json::array();
      for (const auto& element : value) array.push_back(Encode(element));
      return array;
    } else {
      static_assert(std::is_arithmetic_v<T>, "give the enum a Name(), or the struct its Fields()");
      return json(value);
    }
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    object_[name] = Encode(value);
  }

 private:
  explicit JsonWriter(json& object) : object_(object) {}
  json& object_;
};

class JsonReader {
 public:
  // The first thing that was wrong, or empty.
  template <typename T>
  static std::string Decode(const json& from, T& value) {
    if constexpr (std::is_same_v<T, JobId>) {
      if (!from.is_string()) return "a job id is a string";
      if (from.get_ref<const std::string&>().empty()) {
        value = JobId();
        return "";
      }
      Result<JobId> id = JobId::Parse(from.get_ref<const std::string&>());
      if (!id) return id.error().message;
      value = *id;
      return "";
    } else if constexpr (NamedEnum<T>) {
      return DecodeName(from, value);
    } else if constexpr (Id<T>) {
      std::underlying_type_t<T> number{};
      std::string error = Decode(from, number);
      value = T{number};
      return error;
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!from.is_boolean()) return "true or false is expected";
      value = from.get<bool>();
      return "";
    } else if constexpr (std::is_integral_v<T>) {
      return DecodeInteger(from, value);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!from.is_number()) return "a number is expected";
      value = from.get<T>();
      return "";
    } else if constexpr (std::is_same_v<T, std::string>) {
      return TextFromJson(from, value);
    } else if constexpr (std::is_same_v<T, Monotonic>) {
      return Decode(from, value.since_origin);
    } else if constexpr (std::is_same_v<T, Wall>) {
      return Decode(from, value.since_epoch);
    } else if constexpr (requires {
                           typename T::period;
                           value.count();
                         }) {
      int64_t count = 0;
      std::string error = Decode(from, count);
      value = T{count};
      return error;
    } else if constexpr (HasFields<T>) {
      if (!from.is_object()) return "an object is expected";
      JsonReader reader(from);
      Fields(reader, value);
      return reader.error_;
    } else if constexpr (requires {
                           value.has_value();
                           *value;
                         }) {
      if (from.is_null()) {
        value.reset();
        return "";
      }
      return Decode(from, value.emplace());
    } else if constexpr (requires { typename T::mapped_type; }) {
      return DecodeMap(from, value);
    } else {
      return DecodeList(from, value);
    }
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    const auto found = object_.find(name);
    if (!error_.empty() || found == object_.end()) return;
    if (std::string error = Decode(*found, value); !error.empty()) error_ = std::string(name) + ": " + error;
  }

 private:
  static constexpr int kEnumMax = 16;

  explicit JsonReader(const json& object) : object_(object) {}

  template <typename T>
  static std::string DecodeName(const json& from, T& value) {
    if (!from.is_string()) return "a name is expected";
    const auto& name = from.get_ref<const std::string&>();
    // What Name() says of a number that is no state is no state's name.
    for (int i = 0; i < kEnumMax && name != Name(static_cast<T>(kEnumMax)); ++i) {
      if (Name(static_cast<T>(i)) == name) {
        value = static_cast<T>(i);
        return "";
      }
    }
    return "unknown name " + Quoted(name);
  }

  template <typename T>
  static std::string DecodeInteger(const json& from, T& value) {
    if (!from.is_number_integer()) return "an integer is expected";
    const bool fits =
        from.is_number_unsigned() ? std::in_range<T>(from.get<uint64_t>()) : std::in_range<T>(from.get<int64_t>());
    if (!fits) return "an integer out of range";
    value = static_cast<T>(from.is_number_unsigned() ? from.get<uint64_t>() : from.get<int64_t>());
    return "";
  }

  template <typename T>
  static std::string DecodeMap(const json& from, T& value) {
    if (!from.is_array()) return "a list of pairs is expected";
    value.clear();
    for (const json& pair : from) {
      typename T::key_type key{};
      typename T::mapped_type mapped{};
      if (!pair.is_array() || pair.size() != 2) return "a pair is expected";
      if (std::string error = Decode(pair[0], key); !error.empty()) return error;
      if (std::string error = Decode(pair[1], mapped); !error.empty()) return error;
      value.insert_or_assign(std::move(key), std::move(mapped));
    }
    return "";
  }

  template <typename T>
  static std::string DecodeList(const json& from, T& value) {
    if (!from.is_array()) return "a list is expected";
    value.clear();
    for (const json& element : from) {
      typename T::value_type decoded{};
      if (std::string error = Decode(element, decoded); !error.empty()) return error;
      value.insert(value.end(), std::move(decoded));
    }
    return "";
  }

  const json& object_;
  std::string error_;
};

template <typename T>
json ToJson(const T& value) {
  return JsonWriter::Encode(value);
}

template <typename T>
Result<T> FromJson(const json& from) {
  T value{};
  if (std::string error = JsonReader::Decode(from, value); !error.empty()) {
    return Fail(ErrorKind::kEnvironment, std::move(error));
  }
  return value;
}

// One line. Texts of ours are UTF-8 by TextToJson; the handler keeps a mistake there from stopping the process.
inline std::string ToText(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

template <typename T>
Result<T> FromText(std::string_view text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return Fail(ErrorKind::kEnvironment, "not JSON");
  return FromJson<T>(parsed);
}

}  // namespace aimaster
