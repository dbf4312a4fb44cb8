// Whether a model's files are still those that lay there before.
#pragma once

#include <string>
#include <vector>

namespace outrider::llama {

// Size and time of change of each file of the model at `path` and of its adapters, a line. What is
// kept of a model is found by what lies at its path; where that is replaced while a model is
// loaded, which takes seconds to minutes, the weights are one file's and the name is another's. So
// it is asked before the first of the files is opened, and again when what they are called is
// known. Empty: a file cannot be looked at. No numbers of inodes: some network file systems give
// new ones.
std::string file_stamps(const std::string& path, const std::vector<std::string>& adapters);

}  // namespace outrider::llama
