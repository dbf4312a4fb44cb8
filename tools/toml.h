// The part of TOML (toml.io, v1.0) that a file of options needs, read strictly: what is not
// understood is an error that names the line, never skipped. CLI11's own reader passes over what it
// does not know and cuts strings at '#', so a stop string would silently change.
//
//   ctx = 8192                  # comment
//   stop = ["\n\n", 'END']      # may span lines
//   [run]                       # options of one command
//   temp = 0.7
//
// Read: comments, [tables], keys (bare or quoted, at most one dot), basic and literal strings with
// all escapes, integers, floats, booleans, arrays of these. Refused: multi-line strings, dates,
// inline tables, arrays of tables, nested arrays, a key given twice.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace outrider::tools {

struct TomlEntry {
  std::string table;                // "" above the first [table]
  std::string key;
  std::vector<std::string> values;  // as text: numbers without '_', booleans "true" or "false"
  std::size_t line = 0;             // of the key, from 1
};

struct TomlFile {
  std::vector<TomlEntry> entries;  // in the order of the file
  std::string error;               // "line 3: ..."; empty: all was read
};

TomlFile parse_toml(std::string_view text);

}  // namespace outrider::tools
