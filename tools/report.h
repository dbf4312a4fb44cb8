// What the commands say on stderr, and their exit codes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tools/signals.h"

namespace outrider::tools {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;
inline constexpr int kSignalBase =
    128;  // + the signal's number: ended by Ctrl-C, SIGTERM or SIGHUP
// The same in words.
inline constexpr std::string_view kExitCodes =
    "0 done, 1 failed (the message is on stderr), 2 wrong usage, 130 ended by Ctrl-C, 143 by "
    "SIGTERM, 129 by SIGHUP (serve and worker: 0, that is how they are stopped).";

// "outrider: error: <message>" in one line (on a terminal, in as many as it takes), and "outrider:
// hint: <hint>" in the next when there is one.
void print_error(std::string_view message, std::string_view hint = "");
void print_warning(std::string_view message);
// "outrider: hint: <hint>"
void print_hint(std::string_view hint);
void print_note(std::string_view message);  // "outrider: <message>"

// `text` on stderr as it is; on a terminal as terminal_text() has it (base/one_line.h).
void print_text(std::string_view text);

// As RuntimeOptions::not_kept. Any thread.
void print_not_kept(const Status& why);

// Says what failed and returns kFailed.
int fail(const Status& status);
// The same, but where a signal was what ended the work the exit code tells of it.
int fail(const Status& status, const SignalWatch& signals);

// Before the work: whether the file that `option` names, if any, can be written.
Status check_output(const std::string& option, const std::optional<std::string>& path);

}  // namespace outrider::tools
