#include "core/quote.h"
#include "stacks/dump_parsers.h"
#include "stacks/text_scan.h"

namespace aimaster::stacks {

Result<std::vector<ProcessDump>> ParseDump(std::string_view text) {
  // gdb's last: its frames are the least particular.
  for (const auto parse :
       {&ParsePySpyJson, &ParsePySpyText, &ParsePystack, &ParseEuStack, &ParseFaulthandler, &ParseGdb}) {
    std::vector<ProcessDump> dumps = parse(text);
    if (!dumps.empty()) return dumps;
  }
  std::string_view rest = text, line;
  while (NextLine(rest, line) && Trim(line).empty()) {
  }
  return Fail(ErrorKind::kUsage,
              "holds no call stacks that are known (of py-spy dump, pystack, eu-stack, gdb or "
              "faulthandler); it begins with " +
                  Quoted(Trim(line)));
}

}  // namespace aimaster::stacks
