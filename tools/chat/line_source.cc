#include "tools/chat/line_source.h"

#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string_view>

#include "tools/chat/terminal_modes.h"
#include "tools/paste.h"
#include "tools/signals.h"

namespace outrider::tools {
namespace {

class PlainLines : public LineSource {
 public:
  explicit PlainLines(std::size_t max_bytes) : reader_(STDIN_FILENO, max_bytes) {}

  Kind next(const std::string& prompt, std::string& line) override {
    if (!terminal_) return next_of_file(line);
    std::fputs(prompt.c_str(), stderr);
    if (!marks_) return reader_.next(line);
    mark_pastes();
    const Kind kind = reader_.next(line);
    give_back();
    return kind;
  }
  void interrupt() override { reader_.interrupt(); }
  void resume() override { reader_.resume(); }
  const Status& status() const override { return reader_.status(); }

  void handle(int signal_number) override {
    if (signal_number != SIGTSTP) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (modes_) modes_->give_back();
    stop_process();
    if (modes_) modes_->take_again();
  }
  void give_back() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (modes_) modes_->give_back();
    modes_.reset();
  }

 private:
  // Without the mark that editors put in front of UTF-8.
  Kind next_of_file(std::string& line) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    const Kind kind = reader_.next(line);
    if (!begun_ && kind == Kind::kLine && line.starts_with(kMark)) line.erase(0, kMark.size());
    begun_ = true;
    return kind;
  }

  // The terminal marks what is pasted, and does not show the marks' control characters.
  void mark_pastes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    termios now = {};
    if (tcgetattr(STDIN_FILENO, &now) != 0) return;
    modes_.emplace();
    now.c_lflag &= ~static_cast<tcflag_t>(ECHOCTL);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
    std::fputs(kPasteMarksOn, stderr);
  }

  LineReader reader_;
  bool terminal_ = isatty(STDIN_FILENO) == 1;
  // What is asked of a terminal goes where the prompt goes, and into no file.
  bool marks_ = terminal_ && isatty(STDERR_FILENO) == 1 && takes_escapes();
  bool begun_ = false;
  std::mutex mutex_;
  std::optional<TerminalModes> modes_;  // before a line that is being read; mutex_ guards it
};

}  // namespace

std::unique_ptr<LineSource> plain_lines(std::size_t max_bytes) {
  return std::make_unique<PlainLines>(max_bytes);
}

}  // namespace outrider::tools
