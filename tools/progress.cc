#include "tools/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace outrider::tools {
namespace {

constexpr int kCells = 30;

std::string draw(std::string_view title, double fraction) {
  const int percent = static_cast<int>(std::floor(std::clamp(fraction, 0.0, 1.0) * 100.0));
  const std::size_t filled = static_cast<std::size_t>(percent * kCells / 100);
  return std::string(title) + " [" + std::string(filled, '#') + std::string(kCells - filled, ' ') +
         "] " + std::to_string(percent) + " %";
}

// Spaces over what stands on the line, and back to its start.
std::string erase(std::size_t columns) {
  std::string text(columns + 2, ' ');
  text.front() = '\r';
  text.back() = '\r';
  return text;
}

}  // namespace

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

}  // namespace outrider::tools
