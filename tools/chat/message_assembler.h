// From lines to messages.
//
//   hello                 a message; a command where it begins with /
//   one line \            goes on with the next line (the backslash becomes the newline)
//   """                   all lines up to one that ends in """, which may be this one
//   ESC[200~ ... ESC[201~ a paste, with the marks of paste.h, is part of one message
//
// A message of several lines is never a command. A line that is to begin with / gets a space in
// front.
// Tested by message_assembler_test.cc.
#pragma once

#include <optional>
#include <string>

namespace outrider::tools {

struct ChatInput {
  // Without blanks at its end and empty lines in front; of one line also without those in front.
  std::string text;
  bool command = false;
};

class MessageAssembler {
 public:
  // The next line, without its newline; a '\r' at its end goes. The message, where the line ends
  // one; it may be empty.
  std::optional<ChatInput> add(std::string line);

  // The input has ended: what there is, if anything.
  std::optional<ChatInput> finish();

  // Forgets what has begun.
  void reset() { *this = MessageAssembler(); }

  bool pending() const { return begun_; }

 private:
  std::optional<ChatInput> take(bool command);
  // Takes the marks out of `line`; whether the line has any or stands between them.
  bool strip_paste_marks(std::string& line);

  std::string text_;
  bool begun_ = false;    // a message that goes on
  bool quoted_ = false;   // since """
  bool pasting_ = false;  // since ESC[200~
};

}  // namespace outrider::tools
