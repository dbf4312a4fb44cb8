// Where the library's own messages go: a callback, so that an app decides.
#pragma once

#include <functional>
#include <string_view>

namespace outrider {

enum class LogLevel { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

// Called with one line without a newline. Must be callable from any thread.
using LogSink = std::function<void(LogLevel, std::string_view)>;

}  // namespace outrider
