#include "tools/chat/line_source.h"

#include <termios.h>
#include <unistd.h>

#include <cstdio>

#include "tools/paste.h"
#include "tools/signals.h"

namespace outrider::tools {
namespace {

// A terminal that marks what is pasted, and does not show the marks' control characters.
class MarkedPastes {
 public:
  MarkedPastes() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ECHOCTL);
    changed_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &now) == 0;
    std::fputs(kPasteMarksOn, stderr);
  }
  ~MarkedPastes() {
    if (!changed_) return;
    std::fputs(kPasteMarksOff, stderr);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  MarkedPastes(const MarkedPastes&) = delete;
  MarkedPastes& operator=(const MarkedPastes&) = delete;

 private:
  termios before_ = {};
  bool changed_ = false;
};

class PlainLines : public LineSource {
 public:
  explicit PlainLines(std::size_t max_bytes) : reader_(STDIN_FILENO, max_bytes) {}

  Kind next(const std::string& prompt, std::string& line) override {
    if (!terminal_) return reader_.next(line);
    std::fputs(prompt.c_str(), stderr);
    if (!takes_escapes()) return reader_.next(line);
    const MarkedPastes marked;
    return reader_.next(line);
  }
  void interrupt() override { reader_.interrupt(); }
  void resume() override { reader_.resume(); }
  const Status& status() const override { return reader_.status(); }

 private:
  LineReader reader_;
  bool terminal_ = isatty(STDIN_FILENO) == 1;
};

}  // namespace

void LineSource::handle(int signal_number) {
  if (signal_number == SIGTSTP) stop_process();
}

std::unique_ptr<LineSource> plain_lines(std::size_t max_bytes) {
  return std::make_unique<PlainLines>(max_bytes);
}

}  // namespace outrider::tools
