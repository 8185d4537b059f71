#include "cli/command_lookup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "cli/text.h"

namespace aimaster::cli {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";  // the shim's too, where there is no PATH

// 0, or the errno with which executing it would fail, as far as the file tells.
int CheckFile(const std::filesystem::path& file) {
  struct stat status{};
  if (stat(file.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode)) return EACCES;
  return faccessat(AT_FDCWD, file.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

bool IsAbsent(int error) { return error == ENOENT || error == ENOTDIR; }

LookupFailure NotExecutable(const std::filesystem::path& file, int error) {
  const std::string what = "the command " + InQuotes(file.string());
  if (error == EISDIR) return {kExitNotExecutable, what + " is a directory"};
  if (error == EACCES) {
    return {kExitNotExecutable,
            what + " is not executable: permission denied (chmod +x, or name its interpreter: python " +
                file.filename().string() + ")"};
  }
  return {kExitNotExecutable, what + " can't be executed: " + std::strerror(error)};
}

}  // namespace

std::optional<LookupFailure> CheckProgram(const std::string& program, const std::filesystem::path& directory,
                                          const std::optional<std::string>& path) {
  if (program.empty()) return LookupFailure{kExitNotFound, "command not found: the command is an empty text"};
  if (program.find('/') != std::string::npos) {
    const std::filesystem::path file = directory / program;
    const int error = CheckFile(file);
    if (error == 0) return std::nullopt;
    if (IsAbsent(error))
      return LookupFailure{kExitNotFound, "command not found: there is no file " + InQuotes(file.string())};
    return NotExecutable(file, error);
  }
  std::optional<LookupFailure> refused;
  std::string_view rest = path ? std::string_view(*path) : kDefaultPath;
  while (true) {
    const size_t colon = rest.find(':');
    // An empty entry means the working directory.
    const std::filesystem::path file = directory / rest.substr(0, colon) / program;
    const int error = CheckFile(file);
    if (error == 0) return std::nullopt;
    if (!IsAbsent(error) && !refused) refused = NotExecutable(file, error);
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (refused) return refused;
  return LookupFailure{kExitNotFound,
                       "command not found: " + InQuotes(program) + " is in no directory of the job's PATH"};
}

}  // namespace aimaster::cli
