// A cmd as a command line: the flags of the seed's server, turned into the keys of a cmd in JSON.
//
//   server -m "my model.gguf" -c 2048 --no-mmap
//   {"model": "my model.gguf", "n_ctx": 2048, "use_mmap": false}
//
// Words are separated by white space. '...' keeps everything, "..." everything but \" and \\;
// outside of quotes a backslash keeps a following space, quote or backslash (and stands for itself
// before anything else, so that paths of Windows are read right). The first word is the program's
// name. A flag may be written --flag value or --flag=value.
//
// Tested by command_line_test.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/json.h"

namespace outrider::rpcserver {

// The cmd in JSON. Flags that are not known are `warnings`. Errors: kInvalidArgument about the key,
// for an open quote, or a value that is missing or not a number.
Result<json::Json> parse_command_line(std::string_view text, std::vector<std::string>& warnings);

// The words of `text`; nothing when a quote is not closed.
std::optional<std::vector<std::string>> split_words(std::string_view text);

}  // namespace outrider::rpcserver
