// What the tools really print, and what is made of it.
#include "stacks/dump_parsers.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace aimaster::stacks {
namespace {

// py-spy 0.4.0, of a program whose main thread sleeps while another one waits.
constexpr std::string_view kPySpyJson = R"([
  {"pid": 1841, "thread_id": 140631895574208, "thread_name": "bg one", "os_thread_id": 1843, "active": false,
   "owns_gil": false, "process_info": null,
   "frames": [
     {"name": "0x7fe76a621f16", "filename": "/usr/lib/libc.so.6", "module": "/usr/lib/libc.so.6",
      "short_filename": "libc.so.6", "line": 0, "locals": null, "is_entry": true},
     {"name": "bg", "filename": "/home/me/t.py", "module": null, "short_filename": "t.py", "line": 4, "locals": null,
      "is_entry": true}]},
  {"pid": 1841, "thread_id": 140631898435648, "thread_name": "MainThread", "os_thread_id": 1841, "active": true,
   "owns_gil": true, "process_info": null,
   "frames": [
     {"name": "load_batch", "filename": "/home/me/t.py", "module": null, "short_filename": "t.py", "line": 7,
      "locals": null, "is_entry": false},
     {"name": "<module>", "filename": "/home/me/t.py", "module": null, "short_filename": "t.py", "line": 8,
      "locals": null, "is_entry": true}]}
])";

constexpr std::string_view kPySpyText = R"(Process 1841: /usr/bin/python3 t.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 1841 (active+gil): "MainThread"
    clock_nanosleep (libc.so.6)
    load_batch (t.py:7)
        Arguments:
            batch: 12
    <module> (t.py:8)
Thread 1843 (idle): "bg one"
    0x7fe76a621f16 (libc.so.6)
    bg (t.py:4)
)";

constexpr std::string_view kPystack = R"(Traceback for thread 1843 (python3) [] (most recent call last):
    (C) File "./nptl/pthread_create.c", line 442, in start_thread (/usr/lib/libc.so.6)
    (Python) File "/home/me/t.py", line 4, in bg
        threading.Event().wait()
    (C) File "???", line 0, in PyThread_acquire_lock_timed (/usr/bin/python3.11)
    (C) File "./nptl/futex-internal.c", line 57, in __futex_abstimed_wait_common64 (inlined) (/usr/lib/libc.so.6)

Traceback for thread 1841 (python3) [Has the GIL] (most recent call last):
    (Python) File "/home/me/t.py", line 8, in <module>
        load_batch()
    (Python) File "/home/me/t.py", line 7, in load_batch
        time.sleep(1000)

)";

constexpr std::string_view kFaulthandler = R"(step 12
Thread 0x00007fe76a2e06c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait
  File "/home/me/t.py", line 4 in bg

Current thread 0x00007fe76a59b040 (most recent call first):
  File "/home/me/t.py", line 7 in load_batch
  File "/home/me/t.py", line 8 in <module>
step 13
)";

constexpr std::string_view kEuStack = R"(PID 1841 - process
TID 1841:
#0  0x00007fe76a66b545 clock_nanosleep@GLIBC_2.2.5 - /usr/lib/libc.so.6
    ../sysdeps/unix/sysv/linux/clock_nanosleep.c:48:7
#1  0x00000000005d64b4 - /usr/bin/trainer
#2  0x0000000000627d37 void run<int>(int, char - 1) - /usr/bin/trainer
TID 1843:
#0  0x00007fe76a621f16 poll
)";

constexpr std::string_view kGdb = R"([New LWP 1843]
[Thread debugging using libthread_db enabled]

Thread 2 (Thread 0x7f12 (LWP 1843) "worker"):
#0  0x00007fe76a621f16 in __futex_wait (word=0x1, val=2) at ./nptl/futex-internal.c:57
#1  0x00007fe76a62cd90 in ?? () from /usr/lib/libc.so.6
Thread 1 (Thread 0x7f11 (LWP 1841) "trainer"):
#0  barrier (comm=<optimized out>) at barrier.c:20
#1  main () at barrier.c:31
[Inferior 1 (process 1841) detached]
)";

const Thread& ThreadOf(const std::vector<ProcessDump>& dumps, uint64_t id) {
  static const Thread kNobody;
  for (const ProcessDump& dump : dumps) {
    const auto found = std::ranges::find(dump.threads, id, &Thread::id);
    if (found != dump.threads.end()) return *found;
  }
  ADD_FAILURE() << "no thread " << id;
  return kNobody;
}

Frame Python(std::string function, std::string file, uint32_t line) {
  return {.function = std::move(function), .file = std::move(file), .line = line, .language = Language::kPython};
}
Frame NativeAt(std::string function, std::string file, uint32_t line) {
  return {.function = std::move(function), .file = std::move(file), .line = line, .language = Language::kNative};
}

TEST(DumpParsersTest, PySpyTellsThreadsStatesAndTheLock) {
  const auto dumps = ParsePySpyJson(kPySpyJson);
  ASSERT_EQ(dumps.size(), 1u);
  EXPECT_EQ(dumps[0].pid, 1841u);
  const Thread& main = ThreadOf(dumps, 1841);
  EXPECT_EQ(main.name, "MainThread");
  EXPECT_TRUE(main.holds_gil);
  EXPECT_FALSE(main.is_waiting);
  EXPECT_EQ(main.frames,
            (std::vector{Python("<module>", "/home/me/t.py", 8), Python("load_batch", "/home/me/t.py", 7)}))
      << "the outermost first";
  const Thread& other = ThreadOf(dumps, 1843);
  EXPECT_TRUE(other.is_waiting);
  EXPECT_EQ(other.frames.back(), NativeAt("?", "/usr/lib/libc.so.6", 0))
      << "an address is no name: it differs by process";
}

TEST(DumpParsersTest, PySpysTextSaysTheSameAsItsJson) {
  const auto dumps = ParsePySpyText(kPySpyText);
  ASSERT_EQ(dumps.size(), 1u);
  EXPECT_EQ(dumps[0].command, "/usr/bin/python3 t.py");
  const Thread& main = ThreadOf(dumps, 1841);
  EXPECT_TRUE(main.holds_gil);
  EXPECT_EQ(main.frames, (std::vector{Python("<module>", "t.py", 8), Python("load_batch", "t.py", 7),
                                      NativeAt("clock_nanosleep", "libc.so.6", 0)}))
      << "the values of variables are no frames";
  EXPECT_EQ(ThreadOf(dumps, 1843).name, "bg one");
}

TEST(DumpParsersTest, PystackTellsBothLanguages) {
  const auto dumps = ParsePystack(kPystack);
  const Thread& other = ThreadOf(dumps, 1843);
  EXPECT_EQ(other.frames,
            (std::vector{NativeAt("start_thread", "./nptl/pthread_create.c", 442), Python("bg", "/home/me/t.py", 4),
                         NativeAt("PyThread_acquire_lock_timed", "/usr/bin/python3.11", 0),
                         NativeAt("__futex_abstimed_wait_common64", "./nptl/futex-internal.c", 57)}));
  EXPECT_TRUE(ThreadOf(dumps, 1841).holds_gil);
  EXPECT_EQ(ThreadOf(dumps, 1841).frames.back(), Python("load_batch", "/home/me/t.py", 7));
}

TEST(DumpParsersTest, FaulthandlerIsFoundBetweenTheLinesOfATraining) {
  const auto dumps = ParseFaulthandler(kFaulthandler);
  ASSERT_EQ(dumps.size(), 1u);
  ASSERT_EQ(dumps[0].threads.size(), 2u);
  EXPECT_EQ(dumps[0].threads[1].name, "MainThread") << "the oldest comes last";
  EXPECT_EQ(dumps[0].threads[1].frames.back(), Python("load_batch", "/home/me/t.py", 7));
  EXPECT_EQ(dumps[0].threads[0].frames.front(), Python("bg", "/home/me/t.py", 4));
}

TEST(DumpParsersTest, EuStackTellsModulesAndSourcesWhereItKnowsThem) {
  const auto dumps = ParseEuStack(kEuStack);
  const Thread& main = ThreadOf(dumps, 1841);
  EXPECT_EQ(main.frames,
            (std::vector{NativeAt("void run<int>(int, char - 1)", "/usr/bin/trainer", 0),
                         NativeAt("?", "/usr/bin/trainer", 0),
                         NativeAt("clock_nanosleep@GLIBC_2.2.5", "../sysdeps/unix/sysv/linux/clock_nanosleep.c", 48)}));
  EXPECT_EQ(ThreadOf(dumps, 1843).frames, std::vector{NativeAt("poll", "", 0)});
}

TEST(DumpParsersTest, GdbTellsThreadsByTheKernelsNumbers) {
  const auto dumps = ParseGdb(kGdb);
  EXPECT_EQ(ThreadOf(dumps, 1841).frames,
            (std::vector{NativeAt("main", "barrier.c", 31), NativeAt("barrier", "barrier.c", 20)}));
  EXPECT_EQ(ThreadOf(dumps, 1841).name, "trainer");
  EXPECT_EQ(ThreadOf(dumps, 1843).frames, (std::vector{NativeAt("?", "/usr/lib/libc.so.6", 0),
                                                       NativeAt("__futex_wait", "./nptl/futex-internal.c", 57)}));
}

TEST(DumpParsersTest, WhoseWordsTheyAreIsFoundOut) {
  for (const std::string_view text : {kPySpyJson, kPySpyText, kPystack, kFaulthandler, kEuStack, kGdb}) {
    const auto dumps = ParseDump(text);
    ASSERT_TRUE(dumps) << text;
    ASSERT_EQ(dumps->size(), 1u) << text;
    EXPECT_EQ((*dumps)[0].threads.size(), 2u) << text;
  }
}

TEST(DumpParsersTest, ATextInWhichNothingIsKnownIsQuoted) {
  const auto dumps = ParseDump("\n\nIt just hangs\x1b[31m, what now?\n");
  ASSERT_FALSE(dumps);
  EXPECT_EQ(dumps.error().kind, ErrorKind::kUsage);
  EXPECT_NE(dumps.error().message.find("'It just hangs\\x1b"), std::string::npos) << dumps.error().message;
  EXPECT_FALSE(ParseDump(""));
  EXPECT_FALSE(ParseDump("[]"));
}

TEST(DumpParsersTest, AStackThatIsTooDeepKeepsBothItsEnds) {
  std::string text = "Traceback for thread 7 (x) [] (most recent call last):\n";
  for (int i = 0; i < 10'000; ++i) {
    text += "    (Python) File \"/r.py\", line " + std::to_string(i + 1) + ", in recurse\n";
  }
  const std::vector<Frame> frames = ThreadOf(ParsePystack(text), 7).frames;
  EXPECT_LE(frames.size(), kFramesPerStackMax);
  EXPECT_EQ(frames.front().line, 1u);
  EXPECT_EQ(frames.back().line, 10'000u);
  EXPECT_TRUE(std::ranges::any_of(frames, [](const Frame& frame) { return frame.function == "(frames left out)"; }));
}

TEST(DumpParsersTest, NamesAreSafeToPrint) {
  const auto dumps = ParsePystack(
      "Traceback for thread 7 (x) [] (most recent call last):\n"
      "    (Python) File \"/a\x1b[2J.py\", line 1, in f\xff\n");
  const Frame& frame = ThreadOf(dumps, 7).frames.at(0);
  EXPECT_EQ(frame.file, "/a\\x1b[2J.py");
  EXPECT_EQ(frame.function, "f\\xff");
}

}  // namespace
}  // namespace aimaster::stacks
