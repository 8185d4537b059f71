// Every bound on call stacks. A rank that recurses for ever, a program of ten thousand threads or a tool that prints
// rubbish costs a page of text and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aimaster::stacks {

// Of what a tool printed about one process.
inline constexpr size_t kDumpMaxBytes = 8 << 20;
inline constexpr size_t kFramesPerStackMax = 256;  // the innermost ones and the outermost ones are kept
inline constexpr size_t kThreadsPerProcessMax = 1024;
inline constexpr size_t kProcessesPerDumpMax = 4096;
inline constexpr size_t kNameMaxBytes = 240;  // of a function, a file, a thread
inline constexpr size_t kTroubleMaxBytes = 500;

// Of what one node tells the master. Its message holds a little more (wire/limits.h).
inline constexpr size_t kNodeDocumentMaxBytes = 768 << 10;
// Of what a whole job may come to: a hundred thousand ranks of a hundred threads.
inline constexpr size_t kProcessesMax = 1'000'000;
inline constexpr size_t kThreadsMax = 10'000'000;
inline constexpr size_t kDocumentMaxBytes = size_t{1} << 30;
inline constexpr size_t kTextsMax = 1'000'000;
inline constexpr size_t kFramesMax = 2'000'000;
inline constexpr size_t kStacksMax = 500'000;

inline constexpr uint32_t kNone = UINT32_MAX;  // where a number is not known

}  // namespace aimaster::stacks
