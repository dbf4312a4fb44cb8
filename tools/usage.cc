#include "tools/usage.h"

#include <algorithm>

#include "tools/options.h"

namespace outrider::tools {
namespace {

// Optimal string alignment: like Levenshtein's distance, but two neighbours swapped count once.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

// "--ctx: 1 required INT missing" -> "--ctx"
std::string subject(const std::string& what) { return what.substr(0, what.find_first_of(": ")); }

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  const std::size_t letters = word.size() - std::min(word.size(), word.find_first_not_of('-'));
  const std::size_t limit = std::min<std::size_t>(2, letters / 3);
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : known) {
    const std::size_t d = distance(word, candidate);
    if (d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  if (!best.empty() || letters < 3) return best;
  for (const std::string& candidate : known) {
    if (candidate.size() > word.size() && candidate.compare(0, word.size(), word) == 0) {
      return candidate;
    }
  }
  return "";
}

std::string list_of(const std::vector<std::string>& words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last : ", ";
    text += words[i];
  }
  return text;
}

UsageError unexpected_arguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::string command = app.get_parent() != nullptr ? app.get_name() + " " : "";
  const std::string see = "'outrider " + command + "--help' lists all options";
  for (const std::string& argument : arguments) {
    if (argument.size() < 2 || argument.front() != '-') continue;
    const std::string name = argument.substr(0, argument.find('='));
    const std::string near = nearest(name, option_names(app));
    return UsageError("unknown option " + name,
                      near.empty() ? see : "did you mean " + near + "? " + see);
  }
  const std::string first = arguments.empty() ? "" : arguments.front();
  return UsageError("unexpected argument '" + first + "'", see);
}

UsageError translate(const CLI::ParseError& error) {
  const std::string what = error.what();
  const std::string name = error.get_name();
  if (name == "ArgumentMismatch") {
    return UsageError(subject(what) + " needs a value");
  }
  if (name == "ConversionError") {  // only switches leave the conversion to CLI11
    return UsageError(what.substr(what.find("--")) + ": must be true or false, or nothing at all");
  }
  if (name == "FileError") {
    return UsageError("cannot read the config file " + what.substr(0, what.find(" was not")),
                      "--config and OUTRIDER_CONFIG take the path of a TOML file");
  }
  return UsageError(what);
}

}  // namespace outrider::tools
