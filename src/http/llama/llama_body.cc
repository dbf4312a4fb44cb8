#include "http/llama/llama_body.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/completion_params.h"
#include "api/spelling.h"
#include "http/completion/conversation_body.h"
#include "http/llama/llama_form.h"
#include "http/llama/llama_settings.h"
#include "http/openai/openai_body.h"
#include "http/openai/samplers.h"
#include "serve/prompt.h"

namespace outrider::http {
namespace {

using json::Json;
using Prompts = std::vector<std::vector<Token>>;

// {"prompt_string": a text, "multimodal_data": []}: its text.
Result<std::string> text_of_object(const Json& prompt, const std::string& name) {
  std::string text;
  api::JsonFields fields(prompt, name + ".", &llama_dialect());
  fields.require("prompt_string");
  fields.text("prompt_string", text);
  const Json* data = fields.any("multimodal_data");
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  if (data != nullptr && !data->empty()) {
    return refused(StatusCode::kUnsupported, name + ".multimodal_data",
                   "is not supported: this server reads text");
  }
  return text;
}

bool is_id(const Json& value) { return value.is_number(); }

// An array that is one prompt: ids, and strings among them.
bool is_one_prompt(const Json& array) {
  return std::any_of(array.begin(), array.end(), is_id) &&
         std::none_of(array.begin(), array.end(),
                      [](const Json& item) { return item.is_structured(); });
}

Result<Prompts> read_prompts(const Json& body, const Vocabulary& vocabulary) {
  const Json::const_iterator found = body.find("prompt");
  if (found == body.end() || found->is_null()) {
    return refused("prompt", "is missing");
  }
  Prompts prompts;
  const bool several = found->is_array() && !found->empty() && !is_one_prompt(*found);
  const std::size_t n = several ? found->size() : 1;
  OUTRIDER_RETURN_IF_ERROR(check_prompts(n));
  for (std::size_t i = 0; i < n; ++i) {
    const std::string name = several ? "prompt[" + std::to_string(i) + "]" : "prompt";
    OUTRIDER_ASSIGN_OR_RETURN(
        std::vector<Token> tokens,
        read_one_prompt(several ? (*found)[i] : *found, name, {.add_special = true}, vocabulary));
    prompts.push_back(std::move(tokens));
  }
  return prompts;
}

bool is_bias(const Json& value) { return api::as_logit_bias(Json::array({0, value})).has_value(); }

// Whether a key is meant as a token's id. One that is none is no text of digits either: an array
// can say that without a doubt.
bool is_digits(const std::string& key) {
  return !key.empty() && key.find_first_not_of("0123456789") == std::string::npos;
}

// Biases of texts as biases of their tokens, [[id, bias], ...]. Errors name the place in what the
// client sent, which the reader of the field could not know any more. What is neither an array nor
// an object is left to it.
Status spell_out_biases(Json& body, const Vocabulary& vocabulary) {
  constexpr std::string_view kPair = "a token's id or a text, and a number, or false for never";
  const Json::iterator found = body.find("logit_bias");
  if (found == body.end() || !found->is_structured()) return Status();
  Json pairs = Json::array();
  const auto add_text = [&](const std::string& text, const Json& bias) -> Status {
    const Result<std::vector<Token>> tokens =
        vocabulary.tokenize(text, /*add_special=*/false, /*parse_special=*/false);
    if (!tokens.ok()) return tokens.status().in_field("logit_bias");
    OUTRIDER_RETURN_IF_ERROR(check_biases(pairs.size() + tokens->size()));
    for (const Token token : *tokens) pairs.push_back({token, bias});
    return Status();
  };
  OUTRIDER_RETURN_IF_ERROR(check_biases(found->size()));
  for (Json::const_iterator it = found->begin(); it != found->end(); ++it) {
    if (found->is_array()) {
      const Json& pair = *it;
      const bool is_texts = pair.is_array() && pair.size() == 2 && pair[0].is_string();
      if (is_texts ? !is_bias(pair[1]) : !api::as_logit_bias(pair)) {
        const std::size_t place = static_cast<std::size_t>(it - found->cbegin());
        return wrong_value(api::item_name("logit_bias", place), api::shown(pair), kPair);
      }
      if (!is_texts) pairs.push_back(pair);
      if (is_texts) OUTRIDER_RETURN_IF_ERROR(add_text(pair[0].get<std::string>(), pair[1]));
      continue;
    }
    const std::string& key = it.key();
    if (!is_bias(it.value())) {
      return wrong_value("logit_bias." + key, api::shown(it.value()), "a number or false");
    }
    if (const std::optional<Token> id = api::as_token_key(key)) {
      pairs.push_back({*id, it.value()});
    } else if (is_digits(key)) {
      return wrong_value("logit_bias", api::shown(Json(key)),
                         "a token's id; a text of digits is given as [[text, number]]");
    } else {
      OUTRIDER_RETURN_IF_ERROR(add_text(key, it.value()));
    }
  }
  *found = std::move(pairs);
  return Status();
}

// What llama-server has and this server has not: only switched off.
void refuse_what_is_not_done(api::JsonFields& fields) {
  struct Absent {
    std::string_view name;
    float on_from;
  };
  for (const Absent& absent :
       {Absent{"n_discard", 1.0f}, Absent{"min_keep", 1.0f}, Absent{"adaptive_target", 0.0f}}) {
    float value = absent.on_from - 1.0f;
    fields.number(absent.name, value);
    if (value < absent.on_from) continue;
    fields.fail(std::string(absent.name),
                std::string(absent.name) + " is not supported here; leave it out");
  }
  refuse_adapters(fields);
}

// Each answer repeats the settings, and those that are not streamed are sent together.
Status check_repeated(const Json& settings, std::size_t answers) {
  constexpr std::size_t kMost = 32 << 20;
  const std::size_t bytes = answers * (answers > 1 ? json::encode(settings).size() : 0);
  if (bytes <= kMost) return Status();
  return invalid_argument("the settings (grammar, logit_bias and the like), which each of the " +
                          std::to_string(answers) + " answers repeats, have " +
                          std::to_string(bytes) + " bytes in all, at most " +
                          std::to_string(kMost) + " can be; ask for fewer answers at once");
}

constexpr std::int64_t kMostIndentation = 65536;
constexpr std::size_t kMostResponseFields = 128;  // an answer has fewer, down to each number

void read_llama_wishes(api::JsonFields& fields, LlamaWishes& wishes) {
  fields.boolean("return_tokens", wishes.return_tokens);
  fields.boolean("post_sampling_probs", wishes.after_sampler);
  fields.texts("response_fields", wishes.fields);
  fields.fail(check_texts("response_fields", wishes.fields, {}, kMostResponseFields));
  fields.integer("n_indent", wishes.n_indent, 0, kMostIndentation);
  fields.integer("t_max_predict_ms", wishes.max_predict_ms, -1,
                 std::numeric_limits<std::int64_t>::max());
}

void read_n_keep(api::JsonFields& fields, CompletionRequest& request) {
  std::int32_t keep = 0;
  const Range& range = field_named(output_fields(), "shift_keep").range;
  fields.integer("n_keep", keep, whole_limit(range.min), whole_limit(range.max));
  if (request.shift_keep && fields.any("n_keep") != nullptr) request.shift_keep = keep;
}

}  // namespace

Result<std::vector<Token>> read_one_prompt(const Json& prompt, const std::string& name,
                                           const TextReading& reading,
                                           const Vocabulary& vocabulary) {
  std::vector<PromptPart> parts;
  if (prompt.is_string()) {
    parts.emplace_back(prompt.get<std::string>());
  } else if (prompt.is_object()) {
    OUTRIDER_ASSIGN_OR_RETURN(std::string text, text_of_object(prompt, name));
    parts.emplace_back(std::move(text));
  } else if (prompt.is_array() && (reading.joins_texts || is_one_prompt(prompt))) {
    OUTRIDER_RETURN_IF_ERROR(check_prompt_parts(prompt.size(), name));
    for (const Json& part : prompt) {
      const std::optional<std::int64_t> id = api::as_integer(part);
      if (part.is_string()) {
        parts.emplace_back(part.get<std::string>());
      } else if (id && *id >= 0 && *id < vocabulary.size()) {
        parts.emplace_back(static_cast<Token>(*id));
      } else {
        return wrong_value(api::item_name(name, parts.size()), api::shown(part),
                           "a string or a token's id, below " + std::to_string(vocabulary.size()));
      }
    }
  } else {
    return wrong_value(name, api::shown(prompt), "a string, or an array of strings and token ids");
  }
  Result<std::vector<Token>> tokens =
      tokenize_parts(parts, vocabulary, reading.add_special, reading.parse_special);
  if (!tokens.ok()) return tokens.status().in_field(name);
  return tokens;
}

Result<CompletionTask> llama_task(Json body, const ServerOptions& options, const Target& target,
                                  const Prompts& prompts) {
  const Vocabulary& vocabulary = target.vocabulary();
  OUTRIDER_RETURN_IF_ERROR(spell_out_biases(body, vocabulary));
  CompletionRequest request = defaults_for(body, llama_dialect(), options.defaults);
  AnswerWishes answer;
  LlamaWishes wishes;
  api::JsonFields fields(body, "", &llama_dialect());
  read_wishes(fields, answer);
  read_llama_wishes(fields, wishes);
  refuse_what_is_not_done(fields);
  read_n_keep(fields, request);
  api::read_completion_fields(fields, request);
  const std::vector<std::string_view> samplers = read_samplers(fields, request.sampling);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  if (request.logprobs == 0) request.logprobs = -1;
  request.logprobs_after_sampler = wishes.after_sampler;
  wishes.return_progress = answer.return_progress;
  wishes.timings_per_token = answer.timings_per_token;

  LlamaAsked asked{
      .settings = llama_settings(request, vocabulary, samplers), .prompts = {}, .n = answer.n};
  asked.settings["stream"] = answer.stream;
  asked.settings["timings_per_token"] = wishes.timings_per_token;
  std::vector<std::vector<PromptPart>> parts;
  for (const std::vector<Token>& prompt : prompts) {
    OUTRIDER_RETURN_IF_ERROR(check_prompt_parts(prompt.size()));
    request.prompt.assign(prompt.begin(), prompt.end());
    const Status status = validate(request);
    if (!status.ok()) return api::spelled_as_in(fields.spelled(status), body);
    parts.push_back(std::move(request.prompt));
    asked.prompts.push_back(spelled_text(prompt, vocabulary));
  }
  OUTRIDER_RETURN_IF_ERROR(check_answers(prompts.size(), answer.n));
  CompletionTask task;
  task.set_requests(std::move(request), answer.n, std::move(parts));
  OUTRIDER_RETURN_IF_ERROR(check_repeated(asked.settings, task.requests.size()));
  set_wishes(answer, task);
  task.form = make_llama_form(std::move(wishes), std::move(asked));
  return task;
}

Result<CompletionTask> read_llama_task(Json body, const ServerOptions& options,
                                       const Target& target) {
  OUTRIDER_ASSIGN_OR_RETURN(Prompts prompts, read_prompts(body, target.vocabulary()));
  body.erase("prompt");
  return llama_task(std::move(body), options, target, prompts);
}

}  // namespace outrider::http
