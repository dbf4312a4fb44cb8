// Bracketed paste: a terminal that is asked to marks where a pasted text begins and ends, so that
// its newlines do not send it line by line.
//
// The sequences are xterm's (ctlseqs, "Bracketed Paste Mode"), which other terminals took over.
// Tested by paste_test.cc: every cut of the bytes.
#pragma once

#include <string>
#include <string_view>

namespace outrider::tools {

inline constexpr const char* kPasteMarksOn = "\033[?2004h";
inline constexpr const char* kPasteMarksOff = "\033[?2004l";
inline constexpr std::string_view kPasteBegins = "\033[200~";
inline constexpr std::string_view kPasteEnds = "\033[201~";

// Whether $TERM is one that such sequences may be sent to.
bool takes_escapes();

// From a terminal's bytes to the keys of a line editor: what is pasted becomes text only. Each of
// its control characters, newlines too, gets `quote` in front, the editor's key for "take the next
// one as it is". Tabs become `tab`, a character that is as wide in each column.
class PasteDecoder {
 public:
  PasteDecoder(char quote, std::string_view tab) : quote_(quote), tab_(tab) {}

  // Appends what `bytes`, the next ones that came, are to `keys`. The beginning of a mark is held
  // back until what follows has come.
  void feed(std::string_view bytes, std::string& keys);

 private:
  void add_pasted(char byte, std::string& keys);

  char quote_;
  std::string_view tab_;
  std::string held_;
  bool pasting_ = false;
  bool after_return_ = false;  // the last pasted byte was '\r'
};

}  // namespace outrider::tools
