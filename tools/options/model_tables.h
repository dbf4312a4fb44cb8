// [models.NAME] of a config file: the models of a server, each with its own options.
//
//   ctx = 4096
//   [models.large]
//   model = "large.gguf"
//   draft-model = "small.gguf"
//   aliases = ["gpt-4"]
//   ctx = 8192              # what a table does not say is as for the server
//
// The keys are the long names of the model options (tools/options/model_options.h), of drafters'
// files and `aliases`; '_' serves as '-'.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "draft/base/lookup_drafter.h"
#include "tools/options/model_options.h"

namespace outrider::tools {

struct ModelTable {
  std::string name;
  std::size_t line = 0;
  ModelArguments model;  // with a target
  std::vector<DrafterFile> files;
  std::vector<std::string> aliases;
};

// Of `text`, the contents of `file`, in its order. `defaults`: what tables do not say; names of
// models are not taken from it. Throws UsageError with file and line: unknown keys, values out of
// range, a table without a model, one name twice.
std::vector<ModelTable> read_model_tables(const std::string& file, std::string_view text,
                                          const ModelArguments& defaults);

}  // namespace outrider::tools
