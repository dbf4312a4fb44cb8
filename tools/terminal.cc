#include "tools/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "tools/options/options.h"

namespace outrider::tools {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
constexpr int kCells = 30;

std::string draw(std::string_view title, double fraction) {
  const int percent = static_cast<int>(std::floor(std::clamp(fraction, 0.0, 1.0) * 100.0));
  const std::size_t filled = static_cast<std::size_t>(percent * kCells / 100);
  return std::string(title) + " [" + std::string(filled, '#') + std::string(kCells - filled, ' ') +
         "] " + std::to_string(percent) + " %";
}

// Spaces over what stands on the line, also where the terminal itself put a ^C or two behind it,
// and back to its start.
std::string erase(std::size_t columns) {
  constexpr std::size_t kEchoed = 4;
  std::string text(columns + kEchoed + 2, ' ');
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
  std::string line = draw(title, fraction);
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
  std::fputs((std::string(line) + "\n").c_str(), stderr);
}

Terminal::Terminal(const OutputArguments& output, const std::vector<int>& signals_too)
    : signals(signals_too), log(log_sink(output, progress)) {}

}  // namespace outrider::tools
