// What a person, or a script, gives a chat next: lines put together, and Ctrl-C while it waits.
#pragma once

#include "tools/chat/line_source.h"
#include "tools/chat/message_assembler.h"
#include "tools/signals.h"

namespace outrider::tools {

class ChatReader {
 public:
  enum class Kind {
    kInput,        // a message or a command; never an empty one
    kTooLong,      // a line was passed over
    kDropped,      // Ctrl-C over something that had been typed, which is forgotten
    kInterrupted,  // Ctrl-C with nothing typed, or SIGTERM (see SignalWatch::terminated())
    kEnd,          // of the input, or it failed: see LineSource::status()
  };

  // Both must outlive it.
  ChatReader(LineSource& lines, SignalWatch& signals) : lines_(lines), signals_(signals) {}

  // Waits for it. An interruption is forgotten once it has been told, but SIGTERM's.
  Kind next(ChatInput& input);

  // Forgets what has been typed ahead, as Ctrl-C has it.
  void drop_typed();

 private:
  LineSource::Kind next_line(std::string& line);

  LineSource& lines_;
  SignalWatch& signals_;
  MessageAssembler assembler_;
};

}  // namespace outrider::tools
