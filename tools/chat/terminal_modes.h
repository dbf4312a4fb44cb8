// What a shell finds of its terminal's modes whenever the command is not using it: stopped by
// Ctrl-Z, killed, or at its end.
#pragma once

#include <termios.h>

namespace outrider::tools {

// Of standard input. One thread at a time. Does nothing where that is no terminal.
class TerminalModes {
 public:
  TerminalModes();  // what there is now is the shell's

  // The shell's modes again, and no marks around pastes.
  void give_back();
  // What there was before give_back(), with the marks.
  void take_again();

 private:
  bool terminal_ = false;
  bool given_back_ = false;
  termios shell_ = {};
  termios ours_ = {};
};

}  // namespace outrider::tools
