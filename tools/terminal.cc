#include "tools/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/one_line.h"
#include "base/utf8.h"
#include "tools/options/options.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
constexpr int kCells = 30;

constexpr std::size_t kLeastTitle = 12;  // of one that is cut

// Of the terminal that messages go to; 0: unknown. It may change at any time.
std::size_t terminal_columns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Spaces over what stands on the line, also where the terminal itself put a ^C or two behind it,
// and back to its start.
std::string erase(std::size_t shown) {
  constexpr std::size_t kEchoed = 4;
  const std::size_t columns = terminal_columns();
  std::size_t spaces = shown + kEchoed;
  if (columns > 0) spaces = std::min(spaces, columns - 1);
  std::string text(spaces + 2, ' ');
  text.front() = '\r';
  text.back() = '\r';
  return text;
}

LogSink log_sink(const OutputArguments& a, ProgressBar& bar) {
  const std::string level =
      a.verbose == 0 ? a.log_level : std::string(a.verbose == 1 ? "info" : "debug");
  const auto least = std::find(kLevels.begin(), kLevels.end(), level);
  if (least == kLevels.end()) return {};
  return [&bar, least = static_cast<LogLevel>(least - kLevels.begin())](LogLevel of_line,
                                                                        std::string_view line) {
    if (of_line >= least) bar.print("llama.cpp: " + std::string(line));
  };
}

}  // namespace

std::string progress_line(std::string_view title, double fraction, std::size_t columns) {
  const std::string name = one_line(title);
  title = name;
  const int percent = static_cast<int>(std::floor(std::clamp(fraction, 0.0, 1.0) * 100.0));
  const std::size_t filled = static_cast<std::size_t>(percent * kCells / 100);
  const std::string percents = " " + std::to_string(percent) + " %";
  const std::string bar =
      " [" + std::string(filled, '#') + std::string(kCells - filled, ' ') + "]" + percents;
  const std::size_t room = columns > 0 ? columns - 1 : std::string::npos;
  if (title.size() + bar.size() <= room) return std::string(title) + bar;
  const bool has_bar = room >= kLeastTitle + bar.size();
  const std::string& behind = has_bar ? bar : percents;
  const std::size_t left = room > behind.size() ? room - behind.size() : 0;
  title = title.substr(0, left);
  return std::string(title.substr(0, complete_utf8_prefix(title))) + behind;
}

void add_output_options(CLI::App& app, OutputArguments& a) {
  OptionGroup group(app, "Output");
  group.add_switch(
      "--json", a.json,
      "print one JSON object on stdout, and nothing else there; messages stay on stderr");
  check_choices(
      group.declare("--log-level", "which of llama.cpp's own lines to show on stderr", "NAME",
                    a.log_level, [&a](const std::string& level) { a.log_level = level; }),
      {"off", "error", "warning", "info", "debug"});
  app.add_flag("-v,--verbose", a.verbose, "as --log-level info; -vv: debug")->group("Output");
}

ProgressBar::ProgressBar() : enabled_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::update(std::string_view title, double fraction) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!enabled_) return;
  std::string line = progress_line(title, fraction, terminal_columns());
  if (line == shown_) return;
  const std::string gone = line.size() < shown_.size() ? erase(shown_.size()) : "\r";
  std::fputs((gone + line).c_str(), stderr);
  std::fflush(stderr);
  shown_ = std::move(line);
}

void ProgressBar::clear_locked() {
  if (shown_.empty()) return;
  std::fputs(erase(shown_.size()).c_str(), stderr);
  std::fflush(stderr);
  shown_.clear();
}

void ProgressBar::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  clear_locked();
}

void ProgressBar::print(std::string_view line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  clear_locked();
  print_text(std::string(line) + "\n");
}

Terminal::Terminal(const OutputArguments& output, const std::vector<int>& signals_too)
    : signals(signals_too), log(log_sink(output, progress)) {}

}  // namespace outrider::tools
