#include "http/llama/infill.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "http/llama/llama_body.h"
#include "http/llama/llama_settings.h"

namespace outrider::http {
namespace {

using json::Json;
using Tokens = std::vector<Token>;

struct ExtraFile {
  std::string filename = "tmp";
  std::string text;
};

void append(Tokens& tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

std::vector<ExtraFile> read_extra(api::JsonFields& fields) {
  std::vector<ExtraFile> files;
  const Json* given = fields.any("input_extra");
  if (given == nullptr) return files;
  if (!given->is_array()) {
    fields.refuse("input_extra", *given, R"(an array of {"filename", "text"})");
    return files;
  }
  static constexpr std::string_view kIgnored[] = {"time"};  // of the editor: when it was seen
  static const api::Dialect kDialect{.names = {}, .ignored = kIgnored, .null_is_absent = true};
  for (const Json& item : *given) {
    api::JsonFields inner(item, "input_extra[" + std::to_string(files.size()) + "].", &kDialect);
    ExtraFile& file = files.emplace_back();
    inner.text("filename", file.filename);
    inner.require("text");
    inner.text("text", file.text);
    fields.take(inner.finish());
    if (!fields.ok()) break;
  }
  return files;
}

// llama-server's names and its mark between files, which editors' users have tuned their models to.
constexpr const char* kProject = "myproject\n";
constexpr const char* kEdited = "filename\n";
constexpr const char* kSnippet = "\n\n--- snippet ---\n\n";

// Files as the model knows them, and the names of the project and of the file that is edited.
Result<Tokens> extra_tokens(const std::vector<ExtraFile>& files, const Vocabulary& vocabulary) {
  const SpecialTokens special = vocabulary.special();
  Tokens tokens;
  Status error;
  const auto add = [&](const std::string& text) {
    Result<Tokens> more = vocabulary.tokenize(text, /*add_special=*/false, /*parse_special=*/false);
    if (more.ok()) return append(tokens, *more);
    error = invalid_argument(more.status().message()).in_field("input_extra");
  };
  if (special.repository != kNoToken) {
    tokens.push_back(special.repository);
    add(kProject);
  }
  for (const ExtraFile& file : files) {
    if (special.file != kNoToken) {
      tokens.push_back(special.file);
      add(file.filename + "\n");
    } else {
      add(kSnippet);
    }
    add(file.text);
  }
  if (special.file != kNoToken) {
    tokens.push_back(special.file);
    add(kEdited);
  }
  if (!error.ok()) return error;
  return tokens;
}

// Takes `name` out of the body; a string, or ids and strings mixed. Nothing when it is not there.
// Where `is_code`, texts are code that somebody edits: what spells a control token there is text,
// as llama-server has it.
Result<Tokens> take_text(Json& body, const char* name, bool is_code, const Vocabulary& vocabulary) {
  const Json::iterator found = body.find(name);
  if (found == body.end() || found->is_null()) {
    body.erase(name);
    return Tokens();
  }
  const Json given = std::move(*found);
  body.erase(name);
  return read_one_prompt(given, name, {.parse_special = !is_code, .joins_texts = true}, vocabulary);
}

Result<InfillParts> take_parts(Json& body, const Vocabulary& vocabulary) {
  Json own = Json::object();
  if (body.contains("input_extra")) own["input_extra"] = std::move(body["input_extra"]);
  body.erase("input_extra");
  api::JsonFields fields(own, "", &llama_dialect());
  const std::vector<ExtraFile> files = read_extra(fields);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  for (const char* name : {"input_prefix", "input_suffix"}) {
    if (body.contains(name)) continue;
    return refused(name, "is missing");
  }
  InfillParts parts;
  if (vocabulary.special().front != kNoToken) parts.front = {vocabulary.special().front};
  struct Place {
    const char* name;
    bool is_code;
    Tokens& tokens;
  };
  for (const Place& place : {Place{"input_prefix", /*is_code=*/true, parts.prefix},
                             Place{"input_suffix", /*is_code=*/true, parts.suffix},
                             Place{"prompt", /*is_code=*/false, parts.prompt}}) {
    OUTRIDER_ASSIGN_OR_RETURN(Tokens tokens,
                              take_text(body, place.name, place.is_code, vocabulary));
    place.tokens = std::move(tokens);
  }
  OUTRIDER_ASSIGN_OR_RETURN(Tokens extra, extra_tokens(files, vocabulary));
  parts.extra = std::move(extra);
  return parts;
}

// Editors name llama.cpp's sampler "infill" behind the others. It joins candidates that begin alike
// and weighs ends against the rest; without it the answer is drawn from the model's own chances.
// Returns whether it was named.
bool leave_out_infill_sampler(Json& body) {
  const Json::iterator samplers = body.find("samplers");
  if (samplers == body.end()) return false;
  if (samplers->is_array()) {
    const std::size_t before = samplers->size();
    samplers->erase(std::remove(samplers->begin(), samplers->end(), Json("infill")),
                    samplers->end());
    return samplers->size() < before;
  }
  if (!samplers->is_string()) return false;
  std::string letters = samplers->get<std::string>();
  const bool named = std::erase(letters, 'i') > 0;
  *samplers = letters;
  return named;
}

void keep_end(Tokens& tokens, std::int64_t n) {
  const std::int64_t size = static_cast<std::int64_t>(tokens.size());
  if (size > n) tokens.erase(tokens.begin(), tokens.end() - std::max<std::int64_t>(n, 0));
}

// What the context leaves for the prompt: all but the answer, whose length may not be limited.
std::int64_t room_beside_answer(const Json& body, const ServerOptions& options,
                                const Target& target) {
  const std::int64_t n_ctx = target.capabilities().n_ctx;
  std::int64_t answer = options.defaults.max_tokens;
  for (const char* name : {"max_tokens", "n_predict"}) {
    if (!body.contains(name)) continue;
    answer = api::as_integer(body[name]).value_or(answer);
  }
  const std::int64_t quarter = n_ctx / 4;
  return n_ctx - 1 - (answer < 0 ? quarter : std::min(answer, 2 * quarter));
}

}  // namespace

Tokens join_infill(InfillParts parts, const SpecialTokens& special, std::int64_t room) {
  const auto size = [](const Tokens& tokens) { return static_cast<std::int64_t>(tokens.size()); };
  room = std::max<std::int64_t>(room - size(parts.front) - size(parts.prompt) - 3, 0);
  const std::int64_t quarter = room / 4;
  const std::int64_t n_suffix =
      std::min(size(parts.suffix), std::max(quarter, room - size(parts.prefix)));
  keep_end(parts.prefix, room - n_suffix);
  parts.suffix.resize(static_cast<std::size_t>(n_suffix));
  keep_end(parts.extra, room - n_suffix - size(parts.prefix));

  Tokens tokens = std::move(parts.front);
  append(tokens, parts.extra);
  tokens.push_back(special.fill_prefix);
  append(tokens, parts.prefix);
  append(tokens, parts.prompt);
  tokens.push_back(special.fill_suffix);
  append(tokens, parts.suffix);
  tokens.push_back(special.fill_middle);
  return tokens;
}

Result<CompletionTask> read_infill_task(Json body, const ServerOptions& options,
                                        const Target& target) {
  const Vocabulary& vocabulary = target.vocabulary();
  const SpecialTokens special = vocabulary.special();
  if (!special.fills_in()) {
    return unsupported(
               "this model cannot fill in: it has no tokens for prefix, suffix and middle; take "
               "one "
               "that was trained for it (Qwen2.5-Coder and the like)")
        .about("model");
  }
  const bool left_out = leave_out_infill_sampler(body);
  OUTRIDER_ASSIGN_OR_RETURN(InfillParts parts, take_parts(body, vocabulary));
  const std::int64_t room = room_beside_answer(body, options, target);
  OUTRIDER_ASSIGN_OR_RETURN(
      CompletionTask task,
      llama_task(std::move(body), options, target, {join_infill(std::move(parts), special, room)}));
  if (left_out) task.ignored.emplace_back("samplers.infill");
  return task;
}

}  // namespace outrider::http
