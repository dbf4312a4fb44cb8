// Where a chat's lines come from: a terminal with editing, or a descriptor that gives lines.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tools/line_reader.h"

namespace outrider::tools {

class LineSource {
 public:
  using Kind = LineReader::Kind;
  virtual ~LineSource() = default;

  // Waits for a line. It may hold newlines: a text that was pasted is one line. `prompt` is shown
  // to a person. One thread.
  virtual Kind next(const std::string& prompt, std::string& line) = 0;

  // Behind kInterrupted: whether something had been typed, as far as that can be known.
  virtual bool had_text() const { return false; }

  // As LineReader has them.
  virtual void interrupt() = 0;
  virtual void resume() = 0;
  virtual const Status& status() const = 0;

  // SIGTSTP: gives the terminal back, and stops the process until it goes on. SIGWINCH: the window
  // has another size. The watching thread (SignalWatch::on_other()).
  virtual void handle(int signal_number) = 0;
  // The process is about to die: the terminal gets back what it had. Any thread.
  virtual void give_back() = 0;

  // Keeps a message for the arrow keys, and for later chats.
  virtual void remember(const std::string& /*message*/) {}
};

// Lines of at most `max_bytes` from standard input, as a terminal's own cooked mode or a pipe gives
// them. On a terminal the prompt is on stderr, and where that is one, too, pasted texts come with
// their marks (tools/chat/message_assembler.h). Of a file the mark of UTF-8 in front is no text.
std::unique_ptr<LineSource> plain_lines(std::size_t max_bytes);

}  // namespace outrider::tools
