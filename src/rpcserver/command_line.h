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

#include "json/json.h"
#include "rpcserver/seed_object.h"

namespace outrider::rpcserver {

struct CommandLine {
  json::Json cmd = json::Json::object();
  std::vector<std::string> warnings;  // flags that are not known
  Status refusal;                     // an open quote, a value that is missing or not a number
};

CommandLine parse_command_line(std::string_view text);

// The words of `text`; nothing when a quote is not closed.
std::optional<std::vector<std::string>> split_words(std::string_view text);

}  // namespace outrider::rpcserver
