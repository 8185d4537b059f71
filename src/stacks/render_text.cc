#include <algorithm>
#include <string_view>

#include "core/count.h"
#include "core/time.h"
#include "stacks/render.h"

namespace aimaster::stacks {
namespace {

constexpr size_t kRunsInALine = 12;
constexpr std::string_view kBold = "\x1b[1m", kDim = "\x1b[2m", kRed = "\x1b[1;31m", kPlain = "\x1b[0m";

class Page {
 public:
  Page(const Capture& capture, const TextOptions& options)
      : capture_(capture), options_(options), grouping_(GroupStacks(capture)) {}

  std::string Text() {
    Line(kRed, Capital(OneLine(capture_, grouping_)));
    Line(kDim, Header());
    Missing();
    size_t shown = 0, folded = 0, folded_threads = 0;
    for (const Group& group : grouping_.groups) {
      if (!options_.all && group.folded) {
        ++folded;
        folded_threads += group.threads.size();
      } else if (!options_.all && shown == options_.groups_max) {
        ++more_;
      } else {
        Print(group, shown++ == 0);
      }
    }
    if (more_ > 0) Line(kDim, "and " + Count(more_, "more stack") + ", less rare (--all shows them)", true);
    if (folded > 0) {
      Line(kDim,
           Count(folded_threads, "idle thread") + " in " + Count(folded, "place") +
               " where every rank has one left out (--all shows them)",
           true);
    }
    if (capture_.threads_cut + capture_.processes_cut > 0) {
      Line(kDim,
           "too much for one capture: " + Processes(capture_.processes_cut) + " and " +
               Count(capture_.threads_cut, "thread") + " were left out",
           true);
    }
    return std::move(out_);
  }

 private:
  static std::string Processes(uint64_t count) {
    return std::to_string(count) + (count == 1 ? " process" : " processes");
  }

  static std::string Capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  }

  void Line(std::string_view colour, std::string_view text, bool after_blank = false) {
    if (after_blank) out_ += '\n';
    if (options_.colours && !colour.empty()) out_ += colour;
    out_ += text;
    if (options_.colours && !colour.empty()) out_ += kPlain;
    out_ += '\n';
  }

  std::string Header() const {
    const RankSet &asked = grouping_.asked, &answered = grouping_.answered;
    std::string text = "stacks of ";
    if (asked.empty()) {
      text += Processes(capture_.processes.size());
    } else {
      text += (asked == answered ? "" : std::to_string(answered.size()) + " of ") + Count(asked.size(), "rank");
    }
    if (capture_.time_ns != 0) text += ", taken at " + FormatRfc3339(Wall{Duration{capture_.time_ns}});
    if (capture_.number != 0) text += ", capture " + std::to_string(capture_.number);
    if (!capture_.reason.empty()) text += " (" + capture_.reason + ")";
    return text;
  }

  std::string Whose(const ProcessRow& process) const {
    std::string text = process.rank == kNone ? "" : "rank " + std::to_string(process.rank);
    const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
    if (process.instance != 0) add(capture_.Text(process.instance));
    if (process.node != 0) text += " on " + capture_.Text(process.node);
    if (process.pid != 0) add("process " + std::to_string(process.pid));
    if (process.is_child)
      text += " (started by the rank" + (process.command == 0 ? "" : ": " + capture_.Text(process.command)) + ")";
    return text;
  }

  // Ranks without stacks, those with the same trouble together.
  void Missing() {
    std::vector<std::pair<TextIndex, std::vector<uint32_t>>> by_trouble;
    std::vector<std::pair<TextIndex, size_t>> others;
    for (const uint32_t index : grouping_.without_stacks) {
      const ProcessRow& process = capture_.processes[index];
      if (process.is_child || process.rank == kNone) {
        auto found = std::ranges::find(others, process.trouble, &std::pair<TextIndex, size_t>::first);
        if (found == others.end()) found = others.insert(others.end(), {process.trouble, 0});
        ++found->second;
        continue;
      }
      auto found = std::ranges::find(by_trouble, process.trouble, [](const auto& entry) { return entry.first; });
      if (found == by_trouble.end()) found = by_trouble.insert(by_trouble.end(), {process.trouble, {}});
      found->second.push_back(process.rank);
    }
    const auto why = [this](TextIndex trouble) { return trouble == 0 ? "no reason is known" : capture_.Text(trouble); };
    for (auto& [trouble, ranks] : by_trouble) {
      const RankSet set(std::move(ranks));
      Line(kBold, "no stack of " + std::string(set.size() == 1 ? "rank " : "ranks ") + set.Text(kRunsInALine) + ": " +
                      why(trouble));
    }
    for (const auto& [trouble, count] : others) {
      Line({}, "no stack of " + Processes(count) + " beside the ranks': " + why(trouble));
    }
  }

  void Print(const Group& group, bool is_first) {
    const size_t all = grouping_.answered.size();
    std::string title;
    if (group.ranks.empty()) {
      title = Count(group.threads.size(), "thread");
    } else {
      title = std::to_string(group.ranks.size()) + " of " + Count(all, "rank") + ": " + group.ranks.Text(kRunsInALine);
      if (group.threads.size() != group.ranks.size()) title += ", " + Count(group.threads.size(), "thread");
    }
    if (const std::string_view waits = Describe(group.waits); !waits.empty()) title += ", " + std::string(waits);
    if (group.holds_gil) title += ", holds the GIL";
    if (!group.has_main) title += group.in_background ? ", in the background" : ", not the main thread";
    Line(is_first ? kRed : kBold, title, true);
    Frames(FramesOf(capture_, group.stack), is_first);
    size_t threads = 0;
    for (const uint32_t index : group.threads) {
      const ThreadRow& thread = capture_.threads[index];
      if (!options_.all && threads++ == options_.threads_max) {
        Line(kDim, "  … and " + Count(group.threads.size() - options_.threads_max, "more thread"));
        break;
      }
      std::string line = "  " + Whose(capture_.processes[thread.process]) + ", thread " + std::to_string(thread.id);
      if (thread.name != 0) line += " " + capture_.Text(thread.name);
      Line(kDim, line);
    }
  }

  // A run of native frames is one thing to a person: where in the library it is. That is the innermost of them that has
  // a name.
  void Frames(const std::vector<Frame>& frames, bool is_first) {
    if (frames.empty()) return Line(kDim, "    (no frames)");
    const Frame* const place = PlaceOf(frames);
    size_t lines = 0;
    for (size_t end = frames.size(); end > 0;) {
      if (!options_.all && lines++ == options_.frames_max) return Line(kDim, "      … " + Count(end, "outer frame"));
      size_t begin = end - 1;
      const auto is_ordinary = [&](size_t i) { return frames[i].language == Language::kNative && &frames[i] != place; };
      if (!options_.all && is_ordinary(begin)) {
        while (begin > 0 && is_ordinary(begin - 1)) --begin;
      }
      size_t shown = end - 1;
      while (shown > begin && frames[shown].function == "?") --shown;
      const Frame& frame = frames[shown];
      const bool is_place = &frame == place;
      std::string text = (is_place ? "    > " : "      ") + Describe(frame);
      if (end - begin > 1) text += " … and " + Count(end - begin - 1, "native frame");
      if (is_place && frame.file.find('/') != std::string::npos) text += "   " + frame.file;
      const std::string_view colour = is_place                              ? (is_first ? kRed : kBold)
                                      : frame.language == Language::kPython ? ""
                                                                            : kDim;
      Line(colour, text);
      end = begin;
    }
  }

  const Capture& capture_;
  const TextOptions& options_;
  const Grouping grouping_;
  std::string out_;
  size_t more_ = 0;
};

class Branches {
 public:
  Branches(const Capture& capture, const Tree& tree, const TextOptions& options)
      : capture_(capture), tree_(tree), options_(options) {}

  std::string Text() {
    for (const uint32_t child : tree_.nodes.front().children) Print(child, "");
    return std::move(out_);
  }

 private:
  Frame FrameOf(uint32_t node) const {
    const FrameRow& row = capture_.frames[tree_.nodes[node].frame];
    return {.function = capture_.Text(row.function), .file = capture_.Text(row.file), .line = row.line};
  }

  // A run of frames without a branch is a column; depth is bounded by kFramesPerStackMax.
  void Print(uint32_t node, const std::string& indent) {
    const std::string ranks = Label(tree_.nodes[node]);
    bool is_first = true;
    for (;;) {
      const TreeNode& here = tree_.nodes[node];
      out_ += indent;
      out_ += is_first ? Painted(ranks) : std::string(ranks.size(), ' ');
      out_ += "  " + Describe(FrameOf(node)) + "\n";
      is_first = false;
      const bool goes_on = here.children.size() == 1 && tree_.nodes[here.children.front()].threads == here.threads;
      if (!goes_on) break;
      node = here.children.front();
    }
    for (const uint32_t child : tree_.nodes[node].children) Print(child, indent + "  ");
  }

  static std::string Label(const TreeNode& node) {
    if (node.ranks.empty()) return "[" + std::to_string(node.threads) + "]";
    const std::string times = node.threads == node.ranks.size() ? "" : " ×" + std::to_string(node.threads);
    return "[" + node.ranks.Text(kRunsInALine) + times + "]";
  }
  std::string Painted(const std::string& text) const {
    return options_.colours ? std::string(kBold) + text + std::string(kPlain) : text;
  }

  const Capture& capture_;
  const Tree& tree_;
  const TextOptions& options_;
  std::string out_;
};

}  // namespace

std::string FormatText(const Capture& capture, const TextOptions& options) { return Page(capture, options).Text(); }

std::string FormatTree(const Capture& capture, const TextOptions& options) {
  const Grouping grouping = GroupStacks(capture);
  const Tree tree = MakeTree(capture, grouping, options.all);
  return Branches(capture, tree, options).Text();
}

}  // namespace aimaster::stacks
