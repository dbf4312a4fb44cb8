// The models of a server: -m or -hf, the config file's [models.NAME], and --model-dir.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "catalog/catalog.h"
#include "tools/options/model_folder.h"
#include "tools/options/model_options.h"
#include "tools/options/model_tables.h"
#include "tools/terminal.h"

namespace outrider::tools {

struct CatalogArguments {
  std::optional<std::string> model_dir;
  std::int32_t max_models = 0;
  std::int32_t model_memory = 0;  // MiB; 0: what the machine has free

  std::vector<ModelTable> tables;  // by read_config_models()

  ModelFamilies::Read read_family = llama::read_gguf_family;  // another one in tests
};

// Adds --model-dir, --max-models and --model-memory under "Model".
void add_catalog_options(CLI::App& app, CatalogArguments& arguments);

// After parsing: reads [models.NAME] out of the config file that `app`'s parent was given, if any.
// `defaults`: the command's own model options. Throws UsageError.
void read_config_models(const CLI::App& app, const ModelArguments& defaults,
                        CatalogArguments& arguments);

// The options (without dashes) that other options need and that one of the tables has: a draft,
// workers. As OptionFacts::elsewhere.
std::vector<std::string> options_of_tables(const CatalogArguments& arguments);

// What is left to say of the entries is in `notes`, a sentence each: files that were left out, and
// drafts that are offered.
struct CatalogModels {
  std::vector<CatalogEntry> entries;
  std::vector<std::string> notes;
};

// The entries, the default model first: `own` (its -m, with `files` for its drafters), the tables
// in their order, the folder's by name. Each without a draft has the one that lies beside it as
// offered_draft. A name that the folder shares with another entry is left out with a note.
// Downloads what tables have in the hub, and reads each file's header once. Errors: the folder's;
// kInvalidArgument where there is no model at all, with how to give one; a download's, kCancelled
// on Ctrl-C.
// REQUIRES: download_models(own) has passed
Result<CatalogModels> catalog_models(const ModelArguments& own,
                                     const std::vector<DrafterFile>& files,
                                     CatalogArguments& arguments, Terminal& terminal);

// One that the entry has already is none.
void add_alias(CatalogEntry& entry, const std::string& alias);
// Several, with commas between them.
void add_aliases(CatalogEntry& entry, const std::string& names);

// max_models, memory_bytes and free_memory; the rest is the caller's.
CatalogOptions catalog_options(const CatalogArguments& arguments);

}  // namespace outrider::tools
