// The files of the drafter "ngram-cache".
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "draft/ngram/ngram_drafter.h"
#include "store/tokenizer_id.h"

namespace outrider::tools {

struct NgramArguments {
  std::optional<std::string> static_file;
  std::optional<std::string> dynamic_file;

  bool any() const { return static_file.has_value() || dynamic_file.has_value(); }
};

// Adds --ngram-static and --ngram-dynamic under `heading`. `arguments` must outlive the parsing.
// `dynamic`: the help of the latter, which not every command writes to.
void add_ngram_options(CLI::App& app, NgramArguments& arguments, const std::string& heading,
                       const std::string& dynamic =
                           "ngram-cache: what earlier texts held; starts "
                           "empty when the file does not exist; 'run' adds its prompt and answer");

// Throws UsageError when files are given although `drafter`, the value of --drafter, does not name
// "ngram-cache" (`used` is false).
void check_ngram_options(const NgramArguments& arguments, const std::string& drafter, bool used);

// The drafter with its caches, and what became of the dynamic one.
struct NgramDrafting {
  std::unique_ptr<NgramDrafter> drafter;
  std::shared_ptr<const NgramCache> corpus;  // null: none
  std::shared_ptr<NgramCache> dynamic;       // null: none; empty when its file is not there yet
  double static_ms = 0.0;                    // loading the file
  double dynamic_ms = 0.0;
};

// The file of --ngram-dynamic, empty when it is not there. Errors: load_ngrams()'s others.
Result<NgramCache> load_dynamic_ngrams(const std::string& path, const TokenizerId& tokenizer);

// A static file that is not there is an error; a dynamic one that is not there starts empty. Other
// failures, another tokenizer's file among them, are errors for both.
Result<NgramDrafting> open_ngram_drafting(const NgramArguments& arguments,
                                          const TokenizerId& tokenizer);

}  // namespace outrider::tools
