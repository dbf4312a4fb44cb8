// A file of options in TOML (toml.io, v1.0), read strictly by toml++: what does not fit an option
// is an error that names the line, never skipped. (CLI11's own reader passes over what it does not
// know and cuts strings at '#', so a stop string would silently change.)
//
//   ctx = 8192                  # comment
//   stop = ["\n\n", 'END']      # may span lines
//   [run]                       # options of one command
//   temp = 0.7
//
//   [models.small]              # one of a server's models; the only tables in a table
//   model = "small.gguf"
//
// Dates, arrays in arrays and arrays of tables fit no option.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace outrider::tools {

struct TomlEntry {
  std::string table;  // "" above the first [table]; "models.small"
  std::string key;
  std::vector<std::string> values;  // as text: 8_192 is "8192", 1e-3 is "0.001", booleans "true"
  std::size_t line = 0;             // of the value, from 1
};

// A [models.NAME].
struct TomlModel {
  std::string name;
  std::size_t line = 0;
};

struct TomlFile {
  std::vector<TomlEntry> entries;  // in the order of the file
  std::vector<TomlModel> models;   // likewise
};

// The folder of its tables; "models." before their names.
inline constexpr std::string_view kModelTables = "models";

// Errors: "line 3: ..."
Result<TomlFile> parse_toml(std::string_view text);

}  // namespace outrider::tools
