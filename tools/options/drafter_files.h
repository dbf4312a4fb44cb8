// The options that name files for drafters, as the table has them (draft/drafter_table.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "draft/base/drafter_plan.h"
#include "draft/base/lookup_drafter.h"
#include "tools/options/options.h"

namespace outrider::tools {

// Adds --suffix-store, --ngram-static, --ngram-dynamic, ... `files` gets what they name, and must
// outlive the parsing. `grows`: the help of --ngram-dynamic says that `run` writes to it.
void add_drafter_files(OptionGroup& group, std::vector<DrafterFile>& files, bool grows = true);

// The option that names such a file: "--ngram-static".
std::string file_option(const DrafterFile& file);

// The first that was typed, and not only given by the environment or a config file; null: none.
// `app`: that has the options.
const DrafterFile* typed_file(const CLI::App& app, const std::vector<DrafterFile>& files);

// Throws UsageError for files that were typed and that no drafter of the plan reads. `drafter`: the
// plan as it was given.
void check_drafter_files(const CLI::App& app, const std::vector<DrafterFile>& files,
                         const DrafterPlan& plan, const std::string& drafter);

// Of a command that writes none of them: throws UsageError where --ngram-dynamic was typed and
// names a file that is not there, which would change nothing. `app`: that has the options.
void check_dynamic_file(const CLI::App& app, const std::vector<DrafterFile>& files);

// Those that the plan's drafters read, but a file for --ngram-dynamic that is not there yet: that
// one is empty, and made when there is something to keep.
std::vector<DrafterFile> files_to_read(const std::vector<DrafterFile>& files,
                                       const DrafterPlan& plan);

// The file of --ngram-dynamic, where the plan reads it.
std::optional<std::string> dynamic_file(const std::vector<DrafterFile>& files,
                                        const DrafterPlan& plan);

}  // namespace outrider::tools
