// CodecHarness: fills any of the job's types, field by field, from a source of numbers and texts. It walks the structs
// themselves, not the lists of stored fields, so that a field which the lists forget shows as a difference.
#pragma once

#include <boost/pfr.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "journal/job_fields.h"

namespace aimaster {

// Source: int64_t Number(int64_t min, int64_t max); std::string Text();
template <typename Source>
class Filler {
 public:
  explicit Filler(Source& source) : source_(source) {}

  template <typename T>
  T Make() {
    T value{};
    Fill(value);
    return value;
  }

  void Fill(bool& value) { value = source_.Number(0, 1) == 1; }
  void Fill(double& value) { value = static_cast<double>(source_.Number(-1'000'000, 1'000'000)) / 1024; }
  void Fill(std::string& value) { value = source_.Text(); }
  void Fill(JobId& value) { value = JobId::FromRandom(static_cast<uint64_t>(source_.Number(0, INT64_MAX))); }

  template <typename T>
    requires std::is_integral_v<T>
  void Fill(T& value) {
    constexpr int64_t kMin = std::is_unsigned_v<T> ? 0 : std::numeric_limits<T>::min();
    constexpr int64_t kMax = sizeof(T) < 8 ? static_cast<int64_t>(std::numeric_limits<T>::max()) : INT64_MAX;
    value = static_cast<T>(source_.Number(kMin, kMax));
  }

  template <Id T>
  void Fill(T& value) {
    value = T{Make<std::underlying_type_t<T>>()};
  }

  template <NamedEnum T>
  void Fill(T& value) {
    std::vector<T> states;
    for (int i = 0; i < 16; ++i) {
      if (Name(static_cast<T>(i)) != Name(static_cast<T>(16))) states.push_back(static_cast<T>(i));
    }
    value = states[static_cast<size_t>(source_.Number(0, static_cast<int64_t>(states.size()) - 1))];
  }

  template <typename R, typename P>
  void Fill(std::chrono::duration<R, P>& value) {
    value = std::chrono::duration<R, P>(Make<R>());
  }

  template <typename T>
  void Fill(std::optional<T>& value) {
    if (Make<bool>()) Fill(value.emplace());
  }

  template <typename T>
  void Fill(std::vector<T>& value) {
    value.resize(static_cast<size_t>(source_.Number(1, 3)));
    for (T& element : value) Fill(element);
  }

  template <typename T>
  void Fill(std::set<T>& value) {
    value = {Make<T>(), Make<T>()};
  }

  template <typename K, typename V>
  void Fill(std::map<K, V>& value) {
    for (int i = 0; i < 2; ++i) {
      V one = Make<V>();  // in this order: that of two arguments is the compiler's affair
      value.insert_or_assign(Make<K>(), std::move(one));
    }
  }

  template <typename T>
    requires std::is_aggregate_v<T>
  void Fill(T& value) {
    boost::pfr::for_each_field(value, [this](auto& field) { this->Fill(field); });
  }

 private:
  Source& source_;
};

}  // namespace aimaster
