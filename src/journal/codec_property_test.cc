#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "journal/codec.h"
#include "journal/codec_harness.h"

namespace aimaster {
namespace {

struct AnySource {
  int64_t Number(int64_t min, int64_t max) {
    // Small and extreme numbers are where mistakes are.
    return *rc::gen::weightedOneOf<int64_t>(
        {{1, rc::gen::element(min, max)},
         {2, rc::gen::inRange(min, min + std::min<int64_t>(16, max / 2 - min / 2) + 1)},
         {1, rc::gen::inRange(min, max)}});
  }
  // Any bytes: what ranks print and people pass is not always UTF-8.
  std::string Text() { return *rc::gen::arbitrary<std::string>(); }
};

template <typename T>
T Any() {
  AnySource source;
  return Filler<AnySource>(source).Make<T>();
}

template <typename T>
void ComesBack(Result<T> (*decode)(std::string_view)) {
  const T value = Any<T>();
  const std::string text = Encode(value);
  const Result<T> decoded = decode(text);
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(*decoded == value);
  RC_ASSERT(text.find('\n') == std::string::npos);
}

template <size_t... kIndex>
void EveryKindComesBack(std::index_sequence<kIndex...>) {
  for (const Event& event : {Event(Any<std::variant_alternative_t<kIndex, Event>>())...}) {
    const Input input{Any<Moment>(), event};
    const Result<Input> decoded = DecodeInput(EncodeInput(input));
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == input);
  }
}

RC_GTEST_PROP(CodecProperty, EveryInputComesBack, ()) {
  EveryKindComesBack(std::make_index_sequence<std::variant_size_v<Event>>());
}

RC_GTEST_PROP(CodecProperty, EverySpecComesBack, ()) {
  const JobSpec spec = Any<JobSpec>();
  const Result<JobSpec> decoded = DecodeJobSpec(EncodeJobSpec(spec));
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(*decoded == spec);
}

RC_GTEST_PROP(CodecProperty, EverySummaryComesBack, ()) { ComesBack<JobSummary>(DecodeJobSummary); }
RC_GTEST_PROP(CodecProperty, EveryInstanceComesBack, ()) { ComesBack<InstanceState>(DecodeInstance); }
RC_GTEST_PROP(CodecProperty, EveryNodeComesBack, ()) { ComesBack<NodeState>(DecodeNode); }
RC_GTEST_PROP(CodecProperty, EveryRoundComesBack, ()) { ComesBack<RoundState>(DecodeRound); }
RC_GTEST_PROP(CodecProperty, EveryRecordComesBack, ()) { ComesBack<RestartRecord>(DecodeRecord); }
RC_GTEST_PROP(CodecProperty, EveryDecisionComesBack, ()) { ComesBack<Decision>(DecodeDecision); }
RC_GTEST_PROP(CodecProperty, EveryEventComesBack, ()) { ComesBack<JobEvent>(DecodeEvent); }
RC_GTEST_PROP(CodecProperty, EveryStateComesBack, ()) { ComesBack<StoredState>(DecodeStoredState); }

}  // namespace
}  // namespace aimaster
