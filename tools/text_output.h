// The text of a completion on stdout, as it comes.
#pragma once

#include <unistd.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "serve/runtime.h"

namespace outrider::tools {

// Whether --color ("never", "auto", "always") means colour here: auto does on a terminal that takes
// it, unless NO_COLOR is set; always wins over all.
bool use_color(std::string_view mode);

// The names of `drafters`, each in the colour of its tokens.
std::string color_legend(std::span<const std::string_view> drafters);

// Writes bytes to a file descriptor, each call at once. Not thread-safe.
class TextOutput {
 public:
  // `color`: drafters' accepted guesses stand out: the draft's in green, whatever it is called,
  // those of others in cyan, yellow, magenta, blue, in the order of kDrafterNames; what the target
  // said itself stays as it is. `whole_lines`: finish() ends the line everywhere, and not on a
  // terminal only.
  TextOutput(int descriptor, bool color, bool whole_lines = false)
      : descriptor_(descriptor),
        terminal_(isatty(descriptor) == 1),
        color_(color),
        dim_(color || (terminal_ && use_color("auto"))),
        whole_lines_(whole_lines) {}

  // Nothing more is written after the first failure. What tokens say comes to a terminal as
  // terminal_text() has it (base/one_line.h), everywhere else byte for byte, as `bytes` always do.
  void write(const std::vector<SaidToken>& tokens);
  void write(std::string_view bytes);
  // What the model thinks before it answers, dimmed; where no colours are wanted, as it is.
  void write_thought(std::string_view text);
  // Whether thoughts are dimmed: with colours, and wherever --color auto means them.
  bool dims() const { return dim_; }

  // Back to the default colour, and on a terminal (or with whole_lines) to the start of a line.
  void finish();

  // What went wrong, such as a full disk; not that the reader has gone away (EPIPE).
  const Status& status() const { return status_; }

  // Nothing more can be written: that, or nobody listens any more.
  bool failed() const { return closed_ || !status_.ok(); }

 private:
  void set_color(std::string_view by);
  // The bytes at the beginning of `text` that end the last character; those behind begin another.
  std::size_t end_character(std::string_view text);

  int descriptor_;
  bool terminal_;
  bool color_;
  bool dim_;
  bool whole_lines_;
  std::string_view by_ = "target";  // whose colour is set
  char last_ = '\n';                // the last byte of text
  std::string begun_;               // the last character, where it is cut between two tokens
  bool closed_ = false;             // the reader has gone away
  Status status_;
  std::string buffer_;
};

}  // namespace outrider::tools
