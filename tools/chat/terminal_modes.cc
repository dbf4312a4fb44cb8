#include "tools/chat/terminal_modes.h"

#include <unistd.h>

#include <cstdio>

#include "tools/paste.h"

namespace outrider::tools {

// Not in the initializers: shell_ comes behind terminal_, and its own would make zeros of it.
TerminalModes::TerminalModes() { terminal_ = tcgetattr(STDIN_FILENO, &shell_) == 0; }

void TerminalModes::give_back() {
  if (!terminal_ || given_back_ || tcgetattr(STDIN_FILENO, &ours_) != 0) return;
  std::fputs(kPasteMarksOff, stderr);
  given_back_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &shell_) == 0;
}

void TerminalModes::take_again() {
  if (!given_back_) return;
  given_back_ = false;
  tcsetattr(STDIN_FILENO, TCSADRAIN, &ours_);  // in the background it stops here, as editors do
  std::fputs(kPasteMarksOn, stderr);
}

}  // namespace outrider::tools
