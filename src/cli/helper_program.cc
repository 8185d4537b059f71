#include "cli/helper_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "cli/text.h"
#include "core/argv.h"
#include "journal/files.h"

namespace aimaster::cli {
namespace {

constexpr size_t kComplaintMaxBytes = 4096;

// Memory that another process takes for a file: nothing can fill up, and nothing is left behind.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("aimaster-helper", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  bool Write(std::string_view text) { return WriteAll(descriptor_, text) && lseek(descriptor_, 0, SEEK_SET) == 0; }
  std::string Read(size_t max_bytes) const {
    struct stat status{};
    if (fstat(descriptor_, &status) != 0) return {};
    std::string text(std::min(max_bytes, static_cast<size_t>(status.st_size)), '\0');
    const ssize_t got = pread(descriptor_, text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return text;
  }

 private:
  int descriptor_;
};

}  // namespace

Result<HelperEnd> RunHelper(const std::string& name, std::vector<std::string> words, std::string_view input,
                            size_t output_max_bytes) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = self.parent_path() / name;
  MemoryFile in, out, complaint;
  if (error || in.descriptor() < 0 || out.descriptor() < 0 || complaint.descriptor() < 0 || !in.Write(input)) {
    return Fail(ErrorKind::kEnvironment, "no descriptors or memory");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, complaint.descriptor(), STDERR_FILENO);
  words.insert(words.begin(), program);
  const std::vector<char*> argv = ArgvOf(words);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Fail(ErrorKind::kEnvironment, InQuotes(program) + ": " + std::strerror(failed));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return HelperEnd{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                   .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                   .output = out.Read(output_max_bytes),
                   .complaint = complaint.Read(kComplaintMaxBytes)};
}

}  // namespace aimaster::cli
