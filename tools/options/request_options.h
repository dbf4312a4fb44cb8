// The options that make a request, out of its fields (request/completion_request.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "request/completion_request.h"
#include "serve/loader.h"
#include "tools/options/drafter_files.h"
#include "tools/options/model_options.h"
#include "tools/options/options.h"

namespace outrider::tools {

struct RequestArguments {
  CompletionRequest request;  // all but the prompt

  std::vector<DrafterFile> files;

  // As given; check_request() and read_constraint() put them into the request.
  std::vector<std::string> logit_bias;  // "15043+1", "15043-inf"
  std::vector<std::string> dry_breakers;
  std::optional<std::string> grammar_file;
  std::optional<std::string> schema_file;
  const CLI::App* app = nullptr;  // that has the options
};

// Adds them under "Sampling" and "Speculation", but those `without`. The request's values are the
// defaults. `arguments` must outlive the parsing.
void add_request_options(CLI::App& app, RequestArguments& arguments,
                         std::vector<std::string_view> without = {});

// Throws UsageError for what is out of range or cannot be combined, and for files and models that a
// drafter would need or has no use for. Its drafters are a default from then on. `automatic`: whom
// --drafter auto asks here; not given: as in `run`.
void check_request(RequestArguments& arguments, const ModelArguments& model,
                   std::optional<DrafterPlan> automatic = std::nullopt);

// Of a command whose `target` is open: --drafter names prediction layers and nobody else, and it
// has none, so that nobody would guess. Errors: kInvalidArgument, about "--drafter".
Status check_lone_head(const CompletionRequest& request, const Target& target);

// What to tell of conversations with a target that carries no chat template; empty: it carries one.
std::string no_template_warning(const Target& target);

// Reads the files of --grammar and --json-schema and checks what they hold. Throws UsageError for
// what is no grammar or schema that can be used. Errors: a file cannot be read.
Status read_constraint(RequestArguments& arguments);

// The files that a command reads for such requests, which it must not replace: the models', the
// drafters' and the constraint's.
std::vector<std::string> files_read(const RequestArguments& arguments, const ModelArguments& model);

// Who may be asked, as far as that is known after check_request(), for what needs them
// (tools/options/needs.h). Not given: speculation was switched off.
std::optional<DrafterPlan> asked_drafters(const RequestArguments& arguments,
                                          const ModelArguments& model);

// Whom the request asks: those named, or what auto stands for, without a draft model that was not
// given and, once the `target` is open, without prediction layers that its file does not have.
// Empty: nobody.
DrafterPlan chosen_drafters(const RequestArguments& arguments, const ModelArguments& model,
                            const Target* target = nullptr);

}  // namespace outrider::tools
