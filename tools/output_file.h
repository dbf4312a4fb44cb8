// What is said of a file that a command will write, before the work: a mistake in its name costs
// nothing then. Of whom a command reads it replaces none, and where it makes files of one kind, no
// file of another kind either.
//
// Tested by output_file_test.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace outrider::tools {

struct OutputFile {
  std::string option;              // that names it: "--output"
  std::string path;                // which need not exist
  std::vector<std::string> reads;  // files; those that are not there are passed over

  // Of a file that is there and has a byte at least: kInvalidArgument where it is of another kind
  // than what replaces it. Empty: any file may be replaced.
  std::function<Status(const std::string& path)> check_old;
};

// An OutputFile's `check_old` for a store of this kind (store/store_file.h). A damaged one is one.
std::function<Status(const std::string& path)> is_store(std::string kind);

// Errors name the option: kInvalidArgument (see above), those of check_writable().
Status check_output_file(const OutputFile& output);

// That alone which is said of what is read, for an output that may be a device or a pipe.
Status check_not_read(const OutputFile& output);

}  // namespace outrider::tools
