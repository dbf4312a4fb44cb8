// The options that make a request, out of its fields (request/completion_request.h), and the files
// that its drafters read.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "draft/base/lookup_drafter.h"
#include "request/completion_request.h"
#include "tools/model_options.h"
#include "tools/ngram_options.h"
#include "tools/options.h"

namespace outrider::tools {

struct RequestArguments {
  CompletionRequest request;  // all but the prompt

  // Files for drafters.
  std::vector<std::string> suffix_stores;
  NgramArguments ngrams;

  // As given; check_request() and read_constraint() put them into the request.
  std::vector<std::string> logit_bias;  // "15043+1", "15043-inf"
  std::vector<std::string> dry_breakers;
  std::optional<std::string> grammar_file;
  std::optional<std::string> schema_file;
  std::vector<const CLI::Option*> replaced;  // those that mirostat takes the place of
};

// Adds them under "Sampling" and "Speculation", but those `without`. The request's values are the
// defaults. `arguments` must outlive the parsing.
void add_request_options(CLI::App& app, RequestArguments& arguments,
                         std::initializer_list<std::string_view> without = {});

// --suffix-store, --ngram-static and --ngram-dynamic.
void add_drafter_files(CLI::App& app, const std::string& heading, std::vector<std::string>& stores,
                       NgramArguments& ngrams, const std::string& dynamic_help = "");
// The files that these name, as a runtime attaches them.
std::vector<DrafterFile> drafter_files(const std::vector<std::string>& stores,
                                       const NgramArguments& ngrams);

// The option that names such a file: "--ngram-static".
std::string file_option(const DrafterFile& file);

// --width as a list, rising when parsed. `widths` holds the default.
void add_widths_option(CLI::App& app, std::vector<std::int32_t>& widths);

// Throws UsageError for what is out of range or cannot be combined, and for files and models that a
// drafter would need or has no use for. `automatic`: whom --drafter auto asks here.
void check_request(RequestArguments& arguments, const ModelArguments& model,
                   const DrafterPlan& automatic);
// The same, with what auto stands for in `run`.
void check_request(RequestArguments& arguments, const ModelArguments& model);

// Throws UsageError for files that no drafter of the plan reads. `drafter`: the plan as it was
// given.
void check_drafter_files(const std::vector<std::string>& stores, const NgramArguments& ngrams,
                         const DrafterPlan& plan, const std::string& drafter);

// Reads the files of --grammar and --json-schema and checks what they hold. Returns kDone; or
// kFailed (a file cannot be read) or kWrongUsage (it is no grammar or schema that can be used),
// and has said why.
int read_constraint(RequestArguments& arguments);

// The seed to use: the one given, or a random one below 2^32 (any JSON reader can hold that).
std::uint64_t chosen_seed(const CompletionRequest& request);

// Whom the request asks: those named, or what auto stands for, without a draft model that was not
// given. Empty: nobody.
DrafterPlan chosen_drafters(const RequestArguments& arguments, const ModelArguments& model);

// Why the request is plain decoding; empty: it is not.
std::string off_reason(const RequestArguments& arguments, const ModelArguments& model);

// What a target is opened for when the planner chooses. Measured costs are kept for it.
inline constexpr std::int32_t kOpenedWidth = 16;

// The width that a target is opened for, whether it is used or not, so that its settings do not
// depend on that: --width; with auto 16, with plain decoding 4.
std::int32_t opened_width(const CompletionRequest& request);

}  // namespace outrider::tools
