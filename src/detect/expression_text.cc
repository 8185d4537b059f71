#include "detect/expression_text.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace aimaster {
namespace {

class Writer {
 public:
  Writer(std::string_view expression, const RandomNumber& random) : rest_(expression), random_(random) {}

  std::string Alternatives() {
    std::vector<std::string> all{Concatenation()};
    while (Take('|')) all.push_back(Concatenation());
    return all[Below(all.size())];
  }

 private:
  size_t Below(size_t limit) { return random_() % limit; }
  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  char Next() {
    if (rest_.empty()) return ' ';
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  char OneOf(std::string_view characters) { return characters[Below(characters.size())]; }

  std::string Concatenation() {
    std::string text;
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
      const std::string_view before = rest_;
      std::string once = Atom();
      const std::string_view atom = before.substr(0, before.size() - rest_.size());
      size_t times = Times();
      if (times > 0) text += once;
      for (; times > 1; --times) text += Writer(atom, random_).Alternatives();
    }
    return text;
  }

  size_t Times() {
    size_t least = 1, most = 1;
    if (Take('*')) {
      least = 0, most = 3;
    } else if (Take('+')) {
      most = 3;
    } else if (Take('?')) {
      least = 0;
    } else if (Take('{')) {
      least = most = Number();
      if (Take(',')) most = std::isdigit(static_cast<unsigned char>(rest_[0])) ? Number() : least + 3;
      Take('}');
    }
    return least + Below(std::min<size_t>(most - least, 6) + 1);
  }

  size_t Number() {
    size_t number = 0;
    while (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_[0]))) number = number * 10 + (Next() - '0');
    return number;
  }

  std::string Atom() {
    const char c = Next();
    switch (c) {
      case '^':
      case '$':
        return "";
      case '.':
        return std::string(1, OneOf("abc xyz:,."));
      case '(': {
        if (Take('?')) {
          while (!rest_.empty() && rest_[0] != ':' && rest_[0] != ')') {
            if (Next() == 'i') ignore_case_ = true;
          }
          if (Take(')')) return "";
          Take(':');
        }
        std::string text = Alternatives();
        Take(')');
        return text;
      }
      case '[':
        return Class();
      case '\\':
        return Escape(Next());
      default:
        return Character(c);
    }
  }

  std::string Character(char c) {
    const bool swap = ignore_case_ && Below(2) == 0;
    return std::string(
        1,
        !swap ? c : static_cast<char>(std::isupper(static_cast<unsigned char>(c)) ? std::tolower(c) : std::toupper(c)));
  }

  std::string Escape(char c) {
    switch (c) {
      case 'b':
      case 'B':
        return "";
      case 'd':
        return std::string(1, OneOf("0123456789"));
      case 'w':
        return std::string(1, OneOf("abcXYZ019_"));
      case 'W':
        return std::string(1, OneOf(" -:"));
      case 's':
        return " ";
      case 'S':
        return std::string(1, OneOf("abc/.:1"));
      default:
        return Character(c);
    }
  }

  std::string Class() {
    const bool negated = Take('^');
    std::string members;
    for (bool first = true; !rest_.empty() && (first || rest_[0] != ']'); first = false) {
      const char c = Next();
      if (c == '\\') {
        members += Escape(Next());
      } else if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        Next();
        const char last = Next();
        members += static_cast<char>(c + static_cast<char>(Below(static_cast<size_t>(std::max(last - c, 0)) + 1)));
      } else {
        members += c;
      }
    }
    Take(']');
    return negated ? "q" : members.empty() ? "" : std::string(1, OneOf(members));
  }

  std::string_view rest_;
  const RandomNumber& random_;
  bool ignore_case_ = false;
};

}  // namespace

std::string TextFor(std::string_view expression, const RandomNumber& random) {
  return Writer(expression, random).Alternatives();
}

}  // namespace aimaster
