// Starting ranks, and what is known of them when they end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "shim/launch_format.h"
#include "shim/shim_test_support.h"

namespace aimaster::shim_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST(Attempt, EveryWayToEndIsWrittenDown) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({{"true"}, {"sh", "-c", "exit 7"}, {"sh", "-c", "kill -KILL $$"}, {"sh", "-c", "exit 255"}});
  ASSERT_EQ(attempt.Run(), 0) << attempt.Messages();
  EXPECT_EQ(attempt.Exit(0)["code"], 0);
  EXPECT_EQ(attempt.Exit(1)["code"], 7);
  EXPECT_EQ(attempt.Exit(2)["code"], nullptr);
  EXPECT_EQ(attempt.Exit(2)["signal"], SIGKILL);
  EXPECT_EQ(attempt.Exit(3)["code"], 255);
  for (int local = 0; local < 4; ++local) {
    const json exit = attempt.Exit(local);
    EXPECT_EQ(exit["rank"], 10 + local);
    EXPECT_EQ(exit["local"], local);
    EXPECT_EQ(exit["stopped_by_us"], false);
    EXPECT_EQ(exit["core"], false);
    EXPECT_GT(exit["time_ns"].get<int64_t>(), 1'600'000'000'000'000'000);
    EXPECT_GT(exit["monotonic_ns"].get<int64_t>(), 0);
    EXPECT_GT(exit["max_rss_kb"].get<int64_t>(), 0);
    EXPECT_FALSE(exit.contains("exec_error"));
    EXPECT_EQ(fs::file_size(attempt / ("rank" + std::to_string(local) + ".exit.json")), kShimExitFileBytes);
  }
  EXPECT_EQ(attempt.Json("ended.json")["stop"], "none");
  EXPECT_EQ(attempt.Json("ended.json")["swept"], 0);
  for (const auto& entry : fs::directory_iterator(attempt.path())) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
    EXPECT_NE(entry.path().extension(), ".new") << entry.path();
  }
}

TEST(Attempt, ACoreDumpIsSaidWhereTheKernelMadeOne) {
  const std::string script = "ulimit -c unlimited 2>/dev/null; kill -SEGV $$";
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({{"sh", "-c", script}});
  ASSERT_EQ(attempt.Run(), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    if (chdir(attempt.path().c_str()) == 0) execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    _exit(99);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(attempt.Exit(0)["signal"], SIGSEGV);
  EXPECT_EQ(attempt.Exit(0)["core"], WCOREDUMP(status) != 0);
}

TEST(Attempt, ARankGetsItsOwnWorldAndNothingOfOurs) {
  AttemptDirectory attempt;
  TemporaryDirectory elsewhere;
  attempt.WriteLaunch(
      {{.argv = {"env"}, .environment = {"A=1 \n2", "PATH=/usr/bin:/bin"}},
       {.argv = {"sh", "-c", "ls -l /proc/self/fd | wc -l; readlink /proc/self/fd/0; pwd; echo bad >&2"},
        .cwd = elsewhere.path()},
       {.argv = {"cat", "/proc/self/stat", "/proc/self/status"}}});
  Child shim(attempt.ShimCommand(), attempt / "shim.log", [] {
    signal(SIGCHLD, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    dup2(open("/dev/zero", O_RDONLY), 77);
    dup2(77, 0);
  });
  ASSERT_EQ(shim.Wait(), 0) << attempt.Messages();
  EXPECT_EQ(attempt.Output(0), "A=1 \n2\nPATH=/usr/bin:/bin\n");
  // `ls` prints a total, 0 to 2 and the directory that it reads.
  EXPECT_EQ(attempt.Output(1), "5\n/dev/null\n" + elsewhere.path().string() + "\n");
  EXPECT_EQ(ReadFile(attempt / "rank1.err"), "bad\n");
  EXPECT_EQ(fs::status(attempt / "rank1.out").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  int pid = 0, group = 0, session = 0, parent = 0;
  ASSERT_EQ(std::sscanf(attempt.Output(2).c_str(), "%d (cat) %*c %d %d %d", &pid, &parent, &group, &session), 4);
  EXPECT_EQ(group, pid);
  EXPECT_EQ(session, shim.pid());
  EXPECT_EQ(parent, shim.pid());
  EXPECT_NE(attempt.Output(2).find("SigBlk:\t0000000000000000"), std::string::npos);
  EXPECT_NE(attempt.Output(2).find("SigIgn:\t0000000000000000"), std::string::npos);
}

TEST(Attempt, StartedSaysWhoRuns) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({{"sleep", "1000"}, {"sleep", "1000"}});
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(Eventually([&] { return attempt.Has("started.json"); }));
  const json started = attempt.Json("started.json");
  EXPECT_EQ(started["shim"]["pid"], shim.pid());
  EXPECT_EQ(started["session"], shim.pid());
  EXPECT_EQ(started["boot_id"].get<std::string>() + "\n", ReadFile("/proc/sys/kernel/random/boot_id"));
  ASSERT_EQ(started["ranks"].size(), 2u);
  for (const json& rank : started["ranks"]) {
    const std::string stat = ReadFile("/proc/" + std::to_string(rank["pid"].get<int>()) + "/stat");
    EXPECT_NE(stat.find("(sleep)"), std::string::npos);
    EXPECT_NE(stat.find(" " + std::to_string(rank["start_ticks"].get<uint64_t>()) + " "), std::string::npos);
  }
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
  const int fd = open((attempt / "lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(fcntl(fd, F_GETLK, &lock), 0);
  close(fd);
  EXPECT_EQ(lock.l_type, F_WRLCK);
  EXPECT_EQ(lock.l_pid, shim.pid());
  const std::string status = ReadFile("/proc/" + std::to_string(shim.pid()) + "/status");
  int rss_kb = 0;
  ASSERT_EQ(std::sscanf(status.c_str() + status.find("VmRSS:"), "VmRSS: %d", &rss_kb), 1);
  RecordProperty("shim_rss_kb", rss_kb);
  EXPECT_LE(rss_kb, 1536);
}

TEST(Attempt, DescendantsAreKnownOnDisk) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({{ActorPath(), "tree", attempt / "ready"}}, 0);
  Child shim(attempt.ShimCommand(), attempt / "shim.log");
  const auto lines = [&] {
    const std::string text = ReadFile(attempt / "descendants");
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_TRUE(Eventually([&] { return lines() == 3; })) << ReadFile(attempt / "descendants");
  shim.Signal(SIGTERM);
  EXPECT_EQ(shim.Wait(), 0);
  EXPECT_FALSE(attempt.Has("descendants"));
}

struct ExecCase {
  RankSpec rank;
  int code;
  int error;
  std::string words;
};

TEST(Attempt, ACommandThatCannotRunSaysWhy) {
  AttemptDirectory attempt;
  const std::string no_shebang = attempt / "no_shebang";
  const std::string no_interpreter = attempt / "no_interpreter";
  const std::string not_executable = attempt / "not_executable";
  std::ofstream(no_shebang) << "echo hello\n";
  std::ofstream(no_interpreter) << "#!/no/such/interpreter\n";
  std::ofstream(not_executable) << "#!/bin/sh\n";
  chmod(no_shebang.c_str(), 0755);
  chmod(no_interpreter.c_str(), 0755);
  chmod(not_executable.c_str(), 0644);
  const std::vector<ExecCase> cases = {
      {{.argv = {"no-such-command"}}, 127, ENOENT, "no such command in PATH"},
      {{.argv = {"/no/such/file"}}, 127, ENOENT, "No such file"},
      {{.argv = {"true"}, .environment = {"PATH=/nowhere"}}, 127, ENOENT, "no such command in PATH"},
      {{.argv = {no_interpreter}}, 127, ENOENT, "its interpreter /no/such/interpreter does not exist"},
      {{.argv = {"no_interpreter"}, .environment = {"PATH=/bin:" + attempt.path().string()}},
       127,
       ENOENT,
       "its interpreter /no/such/interpreter does not exist"},
      {{.argv = {no_shebang}}, 126, ENOEXEC, "#!"},
      {{.argv = {not_executable}}, 126, EACCES, "ermission denied"},
      {{.argv = {"not_executable"}, .environment = {"PATH=" + attempt.path().string()}}, 126, EACCES, "ermission"},
      {{.argv = {"/etc/passwd/x"}}, 126, ENOTDIR, "ot a directory"},
      {{.argv = {"true"}, .cwd = "/no/such/directory"}, 126, ENOENT, "working directory /no/such/directory"},
      {{.argv = {"true", std::string(300'000, 'x')}}, 126, E2BIG, "too long"},
      {{.argv = {"no_shebang"}, .environment = {"PATH="}}, 126, ENOEXEC, "#!"},
  };
  std::vector<RankSpec> ranks;
  for (const ExecCase& one : cases) ranks.push_back(one.rank);
  attempt.WriteLaunch(ranks);
  ASSERT_EQ(attempt.Run(), 0) << attempt.Messages();
  for (size_t local = 0; local < cases.size(); ++local) {
    const json exit = attempt.Exit(static_cast<int>(local));
    SCOPED_TRACE(exit.dump());
    EXPECT_EQ(exit["code"], cases[local].code);
    EXPECT_EQ(exit["exec_errno"], cases[local].error);
    EXPECT_NE(exit["exec_error"].get<std::string>().find(cases[local].words), std::string::npos);
  }
}

TEST(Attempt, ALogDirectoryThatIsMissingIsSaid) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({{"true"}});
  std::string launch = ReadFile(attempt / "launch");
  const std::string key = "log_dir=" + attempt.path().string();
  launch.replace(launch.find(key), key.size(), "log_dir=/no/such/place");
  std::ofstream(attempt / "launch") << launch;
  ASSERT_EQ(attempt.Run(), 0);
  EXPECT_EQ(attempt.Exit(0)["code"], 126);
  EXPECT_NE(attempt.Exit(0)["exec_error"].get<std::string>().find("/no/such/place"), std::string::npos);
}

TEST(Attempt, ASpentAttemptIsNotStartedAgain) {
  for (const char* trace : {"tombstone", "ended.json", "rank3.exit.json", "rank0.exit.tmp", "started.json"}) {
    AttemptDirectory attempt;
    attempt.WriteLaunchOf({{"touch", attempt / "ran"}});
    std::ofstream(attempt / trace) << "";
    EXPECT_EQ(attempt.Run(), 0) << trace;
    EXPECT_FALSE(attempt.Has("ran")) << trace;
    EXPECT_FALSE(attempt.Has("rank0.out")) << trace;
  }
}

TEST(Attempt, ASecondShimLeavesTheFirstAlone) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({{"sleep", "1000"}});
  Child first(attempt.ShimCommand(), attempt / "shim.log");
  ASSERT_TRUE(Eventually([&] { return attempt.Has("started.json"); }));
  EXPECT_EQ(attempt.Run(), kShimExitLockHeld);
  EXPECT_FALSE(first.Ended());
  first.Signal(SIGTERM);
  EXPECT_EQ(first.Wait(), 0);
  EXPECT_EQ(attempt.Run(), 0);
}

TEST(Attempt, OfManyShimsAtOnceOneStarts) {
  AttemptDirectory attempt;
  attempt.WriteLaunchOf({{"sh", "-c", "echo started; exec sleep 1000"}});
  std::vector<std::unique_ptr<Child>> shims;
  for (int i = 0; i < 10; ++i) shims.push_back(std::make_unique<Child>(attempt.ShimCommand(), attempt / "shim.log"));
  int refused = 0;
  ASSERT_TRUE(Eventually([&] {
    refused = 0;
    for (auto& shim : shims) refused += shim->Ended();
    return refused == 9 && !attempt.Output(0).empty();
  })) << refused;
  for (auto& shim : shims) {
    if (!shim->Ended()) shim->Signal(SIGTERM);
  }
  for (auto& shim : shims) shim->Wait();
  EXPECT_EQ(attempt.Output(0), "started\n");
}

TEST(Attempt, NothingIsStartedWithoutAGoodLaunchFile) {
  AttemptDirectory attempt;
  EXPECT_EQ(attempt.Run(), kShimExitNoLaunch);
  std::ofstream(attempt / "launch") << "nonsense";
  EXPECT_EQ(attempt.Run(), kShimExitBadLaunch);
  EXPECT_NE(attempt.Messages().find("malformed"), std::string::npos);
  EXPECT_FALSE(attempt.Has("rank0.exit.tmp"));
  attempt.WriteLaunchOf({{"true"}});
  EXPECT_EQ(attempt.Run(), 0) << "a refused start spends nothing";
  EXPECT_EQ(Child({ShimPath(), attempt / "nothing"}, attempt / "shim.log").Wait(), kShimExitNoLaunch);
  EXPECT_EQ(Child({ShimPath()}, attempt / "shim.log").Wait(), kShimExitUsage);
}

TEST(Attempt, AFullDiskLosesNoExitStatus) {
  const std::string result = InPidNamespace([]() -> std::string {
    AttemptDirectory attempt;
    if (mount("tmpfs", attempt.path().c_str(), "tmpfs", 0, "size=256k") != 0) return kNoNamespace;
    attempt.WriteLaunchOf({{"sh", "-c", "while ! test -e go; do sleep 0.01; done; exit 7"}});
    const auto fill = [&] { std::ofstream(attempt / "filler") << std::string(512 * 1024, 'x'); };
    fill();
    if (attempt.Run() != kShimExitInputOutput) return "started without room for the exit file";
    if (attempt.Has("rank0.exit.tmp")) return "left a reservation behind";
    fs::remove(attempt / "filler");
    Child shim(attempt.ShimCommand(), "/dev/null");
    if (!Eventually([&] { return attempt.Has("started.json"); })) return "did not start";
    fill();
    close(open((attempt / "go").c_str(), O_CREAT | O_WRONLY, 0600));
    if (shim.Wait() != 0) return "the shim failed";
    if (attempt.Exit(0)["code"] != 7) return "the exit status is lost";
    if (attempt.Json("ended.json")["stop"] != "none") return "the end is lost";
    umount(attempt.path().c_str());
    return "";
  });
  if (result == kNoNamespace) GTEST_SKIP() << "no rights to mount";
  EXPECT_EQ(result, "");
}

}  // namespace
}  // namespace aimaster::shim_test
