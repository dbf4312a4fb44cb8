#include "api/methods.h"

#include <algorithm>
#include <new>

#include "api/completion_json.h"
#include "api/model_params.h"
#include "api/status_json.h"
#include "base/list_of.h"
#include "base/on_exit.h"

namespace outrider::api {
namespace {

using json::Json;

constexpr std::int64_t kSliceMs = 50;  // how long a wait goes on before it asks gives_up()

Result<Json> system_status(const MethodContext& context, const Json& params) {
  JsonFields fields(params);
  std::int64_t wait_ms = 0;
  fields.integer("wait_ms", wait_ms, 0, kMaxWaitMs);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  while (wait_ms > 0 && !context.gives_up()) {
    const std::int64_t slice = std::min(wait_ms, kSliceMs);
    if (context.runtime.wait_loaded(slice)) break;
    wait_ms -= slice;
  }
  return status_json(context.runtime.status());
}

Json parameters_json(std::span<const Parameter> parameters) {
  Json list = Json::array();
  for (const Parameter& p : parameters) {
    list.push_back({{"name", p.name}, {"type", p.type}, {"help", p.help}});
  }
  return list;
}

Result<Json> system_methods(const MethodContext& /*context*/, const Json& params) {
  JsonFields fields(params);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  Json list = Json::array();
  for (const Method& method : methods()) {
    list.push_back({{"name", std::string(method.name)},
                    {"help", std::string(method.help)},
                    {"parameters", parameters_json(method.parameters)}});
  }
  return Json{{"methods", std::move(list)}};
}

// A file's name, as model.load and model.unload repeat it.
Json named_file(const DrafterFile& file) {
  Json named = {{"role", "drafter"}, {"drafter", file.drafter}};
  if (!file.tier.empty()) named["tier"] = file.tier;
  named["path"] = file.path.empty() ? Json() : Json(file.path);
  return named;
}

Result<Json> drafter_file_load(const MethodContext& context, const Json& params) {
  OUTRIDER_ASSIGN_OR_RETURN(DrafterFile file, read_drafter_file(params, /*needs_path=*/true));
  OUTRIDER_RETURN_IF_ERROR(context.runtime.attach(file));
  Json answer = named_file(file);
  answer["state"] = "loading";
  return answer;
}

Result<Json> drafter_file_unload(const MethodContext& context, const Json& params) {
  OUTRIDER_ASSIGN_OR_RETURN(DrafterFile file, read_drafter_file(params, /*needs_path=*/false));
  const Status status = context.runtime.detach(file);
  if (!status.ok()) return status.field().empty() ? status.about("drafter") : status;
  return named_file(file);
}

Result<Json> model_load(const MethodContext& context, const Json& params) {
  if (about_drafter_file(params)) return drafter_file_load(context, params);
  OUTRIDER_ASSIGN_OR_RETURN(LoadRequest request, read_load_request(params));
  OUTRIDER_RETURN_IF_ERROR(context.runtime.load(request.role, request.options));
  return Json{{"role", std::string(model_role_name(request.role))}, {"state", "loading"}};
}

// The role of model.unload (with_files: it takes "drafter" as well, see above) and
// model.cancel_load, where a file's load is short and ends with model.unload.
ModelRole read_role(JsonFields& fields, bool with_files) {
  std::string name = "target";
  fields.require("role");
  static constexpr std::string_view kRoles[] = {"target", "draft", "drafter"};
  fields.choice("role", name, std::span(kRoles).first(with_files ? 3 : 2));
  return name == "draft" ? ModelRole::kDraft : ModelRole::kTarget;
}

Result<Json> about_role(const Status& status, ModelRole role) {
  if (!status.ok()) return status.about("role");
  return Json{{"role", std::string(model_role_name(role))}};
}

Result<Json> model_unload(const MethodContext& context, const Json& params) {
  if (about_drafter_file(params)) return drafter_file_unload(context, params);
  JsonFields fields(params);
  bool at_once = false;
  const ModelRole role = read_role(fields, /*with_files=*/true);
  for (const char* name : {"drafter", "path", "tier"}) {
    if (fields.any(name) == nullptr) continue;
    fields.fail(name,
                std::string(name) + " goes with the role 'drafter'; a model's role is enough");
  }
  fields.boolean("at_once", at_once);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return about_role(context.runtime.unload(role, at_once), role);
}

Result<Json> model_cancel_load(const MethodContext& context, const Json& params) {
  JsonFields fields(params);
  const ModelRole role = read_role(fields, /*with_files=*/false);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return about_role(context.runtime.cancel_load(role), role);
}

// The model's vocabulary; an error that says what is missing.
Result<std::shared_ptr<const Target>> ready_target(const MethodContext& context) {
  std::shared_ptr<const Target> target = context.runtime.target();
  if (target != nullptr) return target;
  const ModelStatus status = context.runtime.status().target;
  return not_found("no target is ready: it is " + std::string(model_state_name(status.state)) +
                   "; load one by model.load");
}

Result<Json> tokenize(const MethodContext& context, const Json& params) {
  JsonFields fields(params);
  std::string text;
  bool add_special = true;
  bool parse_special = true;
  bool with_pieces = false;
  fields.require("text");
  fields.text("text", text);
  fields.boolean("add_special", add_special);
  fields.boolean("parse_special", parse_special);
  fields.boolean("with_pieces", with_pieces);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  OUTRIDER_ASSIGN_OR_RETURN(std::shared_ptr<const Target> target, ready_target(context));
  const Vocabulary& vocabulary = target->vocabulary();
  Result<std::vector<Token>> tokens = vocabulary.tokenize(text, add_special, parse_special);
  if (!tokens.ok()) return tokens.status().about("text");
  Json answer = {{"tokens", *tokens}, {"count", tokens->size()}};
  if (with_pieces) {
    OUTRIDER_RETURN_IF_ERROR(check_listed(tokens->size(), "text", kListedWithPieces));
    Json pieces = Json::array();
    for (const Token token : *tokens) pieces.push_back(piece_json(vocabulary.spelled(token)));
    answer["pieces"] = std::move(pieces);
  }
  return answer;
}

void read_tokens(JsonFields& fields, std::vector<Token>& tokens) {
  fields.require("tokens");
  const Json* given = fields.any("tokens");
  if (given == nullptr) return;
  if (!given->is_array()) return fields.refuse("tokens", *given, "an array of token ids");
  fields.fail(check_listed(given->size(), "tokens", "token ids"));
  if (!fields.ok()) return;
  for (const Json& value : *given) {
    const std::optional<Token> id = as_token(value);
    if (!id) return fields.refuse(item_name("tokens", tokens.size()), value, "a token's id");
    tokens.push_back(*id);
  }
}

Result<Json> detokenize(const MethodContext& context, const Json& params) {
  JsonFields fields(params);
  std::vector<Token> tokens;
  bool special = false;
  read_tokens(fields, tokens);
  fields.boolean("special", special);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  OUTRIDER_ASSIGN_OR_RETURN(std::shared_ptr<const Target> target, ready_target(context));
  const Vocabulary& vocabulary = target->vocabulary();
  Result<std::string> text = vocabulary.detokenize(tokens);  // also checks the ids
  if (!text.ok()) return text.status().about("tokens");
  if (special) {
    text->clear();
    for (const Token token : tokens) *text += vocabulary.spelled(token);
  }
  return Json{{"text", std::move(*text)}};
}

Result<std::int64_t> read_id(JsonFields& fields) {
  std::int64_t id = 0;
  fields.require("id");
  fields.integer("id", id, 1, std::numeric_limits<std::int64_t>::max());
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return id;
}

// Waits up to `wait_ms`, in slices.
Result<PolledCompletion> wait_for(const MethodContext& context, CompletionId id,
                                  std::int64_t wait_ms) {
  for (;;) {
    const bool gives_up = context.gives_up();
    const std::int64_t slice = std::min(wait_ms, kSliceMs);
    Result<PolledCompletion> polled = context.runtime.poll(id, gives_up ? 0 : slice);
    wait_ms -= slice;
    const bool news = !polled.ok() || polled->finished || !polled->tokens.empty();
    if (news || wait_ms == 0 || gives_up) return polled;
  }
}

// -> {"id","prompt_stats"} (api/completion_json.h).
Result<Json> completion_start(const MethodContext& context, const Json& params) {
  OUTRIDER_ASSIGN_OR_RETURN(CompletionRequest request, read_completion(params));
  OUTRIDER_ASSIGN_OR_RETURN(StartedCompletion started, context.runtime.start(std::move(request)));
  return Json{{"id", started.id}, {"prompt_stats", prompt_stats_json(started.prompt)}};
}

// -> {"updates","finished","prompt_progress"}, and "result" once finished; then the id is unknown.
Result<Json> completion_poll(const MethodContext& context, const Json& params) {
  JsonFields fields(params);
  std::int64_t wait_ms = 0;
  fields.integer("wait_ms", wait_ms, 0, kMaxWaitMs);
  OUTRIDER_ASSIGN_OR_RETURN(const std::int64_t id, read_id(fields));
  Result<PolledCompletion> polled = wait_for(context, static_cast<CompletionId>(id), wait_ms);
  if (!polled.ok()) return polled.status().about("id");
  Json answer = {{"updates", updates_json(polled->tokens)},
                 {"finished", polled->finished},
                 {"prompt_progress", polled->prompt_progress}};
  if (polled->result) answer["result"] = result_json(*polled->result);
  return answer;
}

Result<Json> completion_cancel(const MethodContext& context, const Json& params) {
  JsonFields fields(params);
  OUTRIDER_ASSIGN_OR_RETURN(const std::int64_t id, read_id(fields));
  const Status status = context.runtime.cancel(static_cast<CompletionId>(id));
  if (!status.ok()) return status.about("id");
  return Json{{"id", id}};
}

Result<Json> completion_run(const MethodContext& context, const Json& params) {
  OUTRIDER_ASSIGN_OR_RETURN(CompletionRequest request, read_completion(params));
  OUTRIDER_ASSIGN_OR_RETURN(StartedCompletion started, context.runtime.start(std::move(request)));
  bool taken = false;
  // A run whose caller does not get a result (no memory for it, say) must not go on.
  const OnExit cancel([&] {
    try {
      if (!taken) (void)context.runtime.cancel(started.id);
    } catch (const std::bad_alloc&) {  // it ends by itself, and its result by the retention
    }
  });
  for (;;) {
    if (context.gives_up()) (void)context.runtime.cancel(started.id);  // or it has ended
    OUTRIDER_ASSIGN_OR_RETURN(PolledCompletion polled, context.runtime.poll(started.id, kSliceMs));
    if (!polled.result) continue;
    taken = true;
    return result_json(*polled.result);
  }
}

Json drafters_list(const RuntimeStatus& status) { return {{"drafters", drafters_json(status)}}; }

// A method without parameters.
template <Json (*kAnswer)(const RuntimeStatus&)>
Result<Json> about_status(const MethodContext& context, const Json& params) {
  JsonFields fields(params);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return kAnswer(context.runtime.status());
}

}  // namespace

std::span<const Method> methods() {
  static const Parameter kStatusParameters[] = {
      {"wait_ms", "integer", "wait so long for a load that is going on to end; default 0"}};
  static const Parameter kRoleParameters[] = {{"role", "string", "target or draft"}};
  static const Parameter kUnloadParameters[] = {
      {"role", "string", "target, draft or drafter"},
      {"drafter", "string", "with the role drafter: whose file"},
      {"path", "string", "with the role drafter: which file; without it, all of that drafter"},
      {"tier", "string",
       "with the drafter " + list_of_names(kTieredDrafters, " or ") + ": " +
           list_of_names(kFileTiers, " or ") + "; without it, " +
           (kFileTiers.size() == 2 ? "both" : "all")},
      {"at_once", "boolean", "end the target's requests with what they have; default false"}};
  static const Parameter kTokenizeParameters[] = {
      {"text", "string", "UTF-8"},
      {"add_special", "boolean", "what the model wants in front, such as BOS; default true"},
      {"parse_special", "boolean", "<|im_end|> and the like are control tokens; default true"},
      {"with_pieces", "boolean",
       "the text of each token as well, control tokens by their names; its bytes (0 to 255 each) "
       "where these are no whole characters; default false"}};
  static const Parameter kDetokenizeParameters[] = {
      {"tokens", "array", "token ids"},
      {"special", "boolean", "control tokens by their names, else left out; default false"}};
  static const Parameter kPollParameters[] = {
      {"id", "integer", "of completion.start"},
      {"wait_ms", "integer", "wait so long until there is something new; default 0"}};
  static const Parameter kIdParameters[] = {{"id", "integer", "of completion.start"}};
  static const Method kMethods[] = {
      {"system.status", "models, exactness, requests", kStatusParameters, system_status},
      {"system.methods", "this list", {}, system_methods},
      {"model.load",
       "loads a model or a drafter's file; returns at once, progress is in the status and as "
       "events",
       model_parameters(), model_load, /*for_operators=*/true},
      {"model.cancel_load", "ends a load that is not done", kRoleParameters, model_cancel_load,
       /*for_operators=*/true},
      {"model.unload", "takes a model or a drafter's file out of service", kUnloadParameters,
       model_unload, /*for_operators=*/true},
      {"tokenize", "text -> token ids", kTokenizeParameters, tokenize, /*for_operators=*/false,
       /*needs_target=*/true},
      {"detokenize", "token ids -> text", kDetokenizeParameters, detokenize,
       /*for_operators=*/false,
       /*needs_target=*/true},
      {"completion.start", "starts a completion; returns its id and what became of the prompt",
       completion_parameters(), completion_start, /*for_operators=*/false,
       /*needs_target=*/true},
      {"completion.poll", "what is new, and the result once it has ended", kPollParameters,
       completion_poll},
      {"completion.cancel", "ends a completion with what it has", kIdParameters, completion_cancel},
      {"completion.run", "runs a completion to its end and returns the result",
       completion_parameters(), completion_run, /*for_operators=*/false,
       /*needs_target=*/true},
      {"drafters.list", "who guesses ahead", {}, about_status<drafters_list>},
      {"stats", "counts since the start", {}, about_status<stats_json>},
  };
  return kMethods;
}

const Method* find_method(std::string_view name) {
  for (const Method& method : methods()) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

}  // namespace outrider::api
