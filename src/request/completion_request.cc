#include "request/completion_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <random>

#include "base/list_of.h"
#include "draft/drafter_table.h"
#include "model/model_options.h"

namespace outrider {
namespace {

using Request = CompletionRequest;

constexpr double kMaxInt64 = 9223372036854775807.0;
constexpr std::size_t kMaxPlanBytes = 256;
constexpr std::size_t kMaxNamespaceBytes = 64;

constexpr std::array kRules = [] {
  std::array<std::string_view, kAcceptanceRules.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kAcceptanceRules[i].name;
  return names;
}();

std::string drafters_text(const Request& r) {
  if (!r.speculative) return "none";
  return r.drafters.empty() ? "auto" : to_string(r.drafters);
}

constexpr Field<Request> kPromptFields[] = {
    {.name = "prompt",
     .help = "the text to go on from, or strings and token ids mixed",
     .place = ByHand{"string | array"},
     .most = kMaxListed},
    {.name = "messages",
     .help = "a conversation, [{\"role\",\"content\"}], instead of a prompt: it goes through the "
             "model's own chat template; in OpenAI's forms, with reasoning_content, tool_calls and "
             "tool_call_id",
     .place = ByHand{"array"}},
};

constexpr Field<ChatOptions> kChatFields[] = {
    {.name = "tools",
     .help =
         "what the model may call, [{\"type\":\"function\",\"function\":{\"name\",\"description\","
         "\"parameters\"}}]; the result's message has the calls",
     .place = ByHand{"array"}},
    {.name = "tool_choice",
     .help = "auto: the model decides; none; required: it must call one; or {\"type\":\"function\","
             "\"function\":{\"name\"}}: it must call this one; default: auto",
     .place = ByHand{"string | object"}},
    {.name = "parallel_tool_calls",
     .help = "one answer may have several calls, where the model can",
     .place = &ChatOptions::parallel_tool_calls},
    {.name = "reasoning",
     .help = "the model reasons before it answers, where its template can switch that",
     .place = &ChatOptions::reasoning,
     .or_object = "{\"effort\": none, minimal, low, medium, high, xhigh or max}: how hard"},
    {.name = "chat_template_kwargs",
     .help = "further values for the chat template",
     .place = ByHand{"object"}},
};

constexpr Field<Request> kOutputFields[] = {
    {.name = "max_tokens",
     .help =
         "tokens to generate at most; -1: until the model ends its text or the context is full; "
         "0: the prompt is read for later requests, and nothing said",
     .place = &Request::max_tokens,
     .range = kMaxTokensRange,
     .letter = 'n'},
    {.name = "seed",
     .help = "the same seed gives the same text, with speculation (under the coupled rule) or "
             "without; -1: a random one, which the result tells",
     .place = &Request::seed,
     .range = {.min = -1.0, .max = kMaxInt64}},
    {.name = "stop",
     .help = "end before this text would be said",
     .place = &Request::stop,
     .range = {.min = 1.0, .max = 4096.0},
     .unit = "TEXT",
     .most = 64},
    {.name = "logprobs",
     .help = "report each token's log-probability before the samplers, and those of so many of the "
             "likeliest, in the result; -1: none",
     .place = &Request::logprobs,
     .range = kLogprobsRange},
    {.name = "timeout_ms",
     .help = "end after so many milliseconds with what there is; 0: never",
     .place = &Request::timeout_ms,
     .range = {.min = 0.0, .max = kYearMs}},
    {.name = "shift_keep",
     .help = "when the context is full, drop half of what lies behind so many tokens and go on; "
             "-1: behind the prompt",
     .place = &Request::shift_keep,
     .range = {.min = -1.0, .max = kMaxInt32},
     .otherwise = "a full context ends the text"},
};

// "the draft model or head, ... and n-gram files, if there are any, and suffix".
std::string automatic_help() {
  std::vector<std::string> if_there = {"the draft model or head",
                                       "the target's own prediction layers"};
  std::vector<std::string> always;
  for (const LookupKind* kind : lookup_kinds()) {
    if (kind->unasked == Unasked::kWithFiles) if_there.emplace_back(kind->files->many);
    if (kind->unasked == Unasked::kAlways) always.emplace_back(kind->name);
  }
  return list_of(if_there) + ", if there are any, and " + list_of(always);
}

// "who guesses ahead: auto (...), none, or names: draft-model, suffix (...), ...".
std::string drafter_help() {
  std::vector<std::string> drafts;
  std::string others;
  for (const NeededModel model : {NeededModel::kDraft, NeededModel::kTarget, NeededModel::kNone}) {
    for (const DrafterKind& kind : drafter_kinds()) {
      if (kind.model != model) continue;
      if (model == NeededModel::kDraft) {
        drafts.emplace_back(kind.name);
      } else {
        others += ", " + std::string(kind.name) + " (" + std::string(kind.help) + ")";
      }
    }
  }
  const std::string text = "who guesses ahead: auto (" + automatic_help() +
                           "; with the rules rejection and block the draft alone), none (plain "
                           "decoding), or names: " +
                           list_of(drafts, " or ") + " (a draft whose file is such a head)" +
                           others;
  return text + ". 'a,b' merges their guesses into one tree, 'a/b' asks b only where a has none";
}

Status check_namespace(const std::string& name) {
  const bool printable = std::none_of(name.begin(), name.end(), [](char c) {
    const unsigned char byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
  if (!name.empty() && name.size() <= kMaxNamespaceBytes && printable) return Status();
  return refused("namespace", "has " + std::to_string(name.size()) + " bytes" +
                                  (printable ? "" : " with control characters among them") +
                                  ", but must have 1 to " + std::to_string(kMaxNamespaceBytes) +
                                  ", none of them a control character");
}

// What of a conversation needs messages, and what tools exclude.
Status check_chat(const Request& r) {
  if (r.messages.empty()) {
    if (!r.chat.tools.empty()) return refused("tools", "needs messages, not a prompt");
    if (r.chat.tool_choice == ToolChoice::kRequired) {
      return refused("tool_choice", "asks for a call and needs messages, not a prompt");
    }
    if (!r.chat.template_values.empty()) {
      return refused("chat_template_kwargs", "needs messages, not a prompt");
    }
    return Status();
  }
  if (r.chat.tools.empty()) {
    if (r.chat.tool_choice != ToolChoice::kRequired) return Status();
    return refused("tool_choice", "asks for a call, but there are no tools");
  }
  if (r.chat.tool_choice == ToolChoice::kNone) return Status();
  const bool triggered = !r.sampling.grammar_triggers.empty();
  if (r.sampling.grammar.empty() && !triggered) return Status();
  return refused(triggered ? "grammar_trigger" : "grammar",
                 "cannot be used with tools, whose calls have a grammar of their own; give one of "
                 "them, or tool_choice none");
}

Status check_prompt(const Request& request) {
  if (request.prompt.empty() == request.messages.empty()) {
    return invalid_argument(request.prompt.empty()
                                ? "prompt is missing or empty; give it, or messages"
                                : "prompt and messages are both there; give one of them")
        .about("prompt");
  }
  OUTRIDER_RETURN_IF_ERROR(check_prompt_parts(request.prompt.size()));
  if (request.messages.size() <= kMaxMessages) return check_chat(request);
  return refused("messages", "holds " + std::to_string(request.messages.size()) + ", at most " +
                                 std::to_string(kMaxMessages) + " can be");
}

}  // namespace

std::span<const Field<CompletionRequest>> prompt_fields() { return kPromptFields; }
std::span<const Field<ChatOptions>> chat_fields() { return kChatFields; }
std::span<const Field<CompletionRequest>> output_fields() { return kOutputFields; }
std::span<const Field<CompletionRequest>> speculation_fields() {
  static const std::string kDrafterHelp = drafter_help();
  static const std::string kNamespaceHelp =
      "whose request it is, 1 to " + std::to_string(kMaxNamespaceBytes) +
      " bytes: where the operator has texts remembered, the drafter suffix looks at those of the "
      "same namespace, and the answer joins them";
  static const Field<CompletionRequest> kFields[] = {
      {.name = "drafter",
       .help = kDrafterHelp,
       .place = TextForm<CompletionRequest>{set_drafters, drafters_text},
       .unit = "EXPR"},
      {.name = "speculative",
       .help = "true, false, or how to speculate: {drafters, rule, width, branches, split_p, "
               "draft_p_min, draft_p_ratio, namespace}, fields that may also stand beside it",
       .place = ByHand{"boolean | object"}},
      {.name = "width",
       .help =
           "tokens of one target step at most, its own last one included; 1: plain decoding; auto: "
           "in each step as many as pay, by what steps cost here and how often guesses are right "
           "(4 with the rules rejection and block)",
       .place = OrAuto<CompletionRequest>{&CompletionRequest::width, kAutoWidth},
       .range = kWidthRange},
      {.name = "rule",
       .help =
           "how guesses are accepted. coupled: the target draws its own token with noise that "
           "depends on seed and position only, and a guess counts when it is that token, so the "
           "text is that of plain decoding. rejection and block (which judges a chain as a whole) "
           "draw from the same distribution, but the text differs from run setting to run setting",
       .place = choice<&CompletionRequest::rule>(kRules)},
      {.name = "namespace",
       .help = kNamespaceHelp,
       .place = &CompletionRequest::name_space,
       .otherwise = "nobody's"},
  };
  return kFields;
}

Status set_drafters(CompletionRequest& request, std::string_view expression,
                    const std::string& name) {
  if (expression.size() > kMaxPlanBytes) {
    return refused(name, "has " + std::to_string(expression.size()) + " bytes, at most " +
                             std::to_string(kMaxPlanBytes) + " can be");
  }
  DrafterPlan plan;
  if (expression != "auto" && expression != "none") {
    Result<DrafterPlan> parsed = parse_drafter_plan(expression, kDrafterNames, name);
    if (!parsed.ok()) return parsed.status();
    plan = std::move(*parsed);
  }
  request.speculative = expression != "none";
  request.drafters = std::move(plan);
  request.drafters_by_default = false;
  return Status();
}

std::optional<LogitBias> parse_logit_bias(std::string_view text) {
  LogitBias bias;
  const char* const end = text.data() + text.size();
  const std::from_chars_result id = std::from_chars(text.data(), end, bias.token);
  if (id.ec != std::errc() || id.ptr == end || (*id.ptr != '+' && *id.ptr != '-')) return {};
  const std::from_chars_result number = std::from_chars(id.ptr + 1, end, bias.bias);
  if (number.ec != std::errc() || number.ptr != end || !(bias.bias >= 0.0f)) return {};
  if (*id.ptr == '-') bias.bias = -bias.bias;
  return bias;
}

std::int32_t opened_width(const CompletionRequest& request) {
  constexpr std::int32_t kPlain = 4;
  if (request.width == kAutoWidth) return kOpenedWidth;
  return request.width == 1 ? kPlain : request.width;
}

std::uint64_t chosen_seed(const CompletionRequest& request) {
  if (request.seed >= 0) return static_cast<std::uint64_t>(request.seed);
  std::random_device random;
  return random() & 0xFFFFFFFFU;
}

Status check_listed(std::size_t n, const std::string& field, std::string_view what) {
  if (n <= kMaxListed) return Status();
  return refused(field, "holds " + std::to_string(n) + " " + std::string(what) + ", at most " +
                            std::to_string(kMaxListed) + " can be");
}

Status check_prompt_parts(std::size_t n, const std::string& name) {
  return check_listed(n, name, "texts and token ids");
}

Status validate(const CompletionRequest& r) {
  OUTRIDER_RETURN_IF_ERROR(check_prompt(r));
  return validate_settings(r);
}

Status validate_settings(const CompletionRequest& r) {
  OUTRIDER_RETURN_IF_ERROR(check(output_fields(), r));
  OUTRIDER_RETURN_IF_ERROR(validate(r.sampling));
  OUTRIDER_RETURN_IF_ERROR(check(speculation_fields(), r));
  OUTRIDER_RETURN_IF_ERROR(check(shape_fields(), r.draft));
  OUTRIDER_RETURN_IF_ERROR(check_branches(r.rule, r.draft.branches));
  return r.name_space ? check_namespace(*r.name_space) : Status();
}

Status check_rule(const CompletionRequest& r, ExactMode exact) {
  if (keeps_text(r.rule) || exact != ExactMode::kOn) return Status();
  return refused("rule", "is " + std::string(traits_of(r.rule).name) +
                             ", which keeps the distribution, not the text, but exact is on; "
                             "take coupled, or leave exact out");
}

Status check_own_head(const CompletionRequest& r, std::string_view why_none) {
  const bool speculates = r.speculative && r.width != 1;
  if (why_none.empty() || !speculates || r.drafters_by_default) return Status();
  if (!mentions_own_head(r.drafters)) return Status();
  return refused("drafter", "is '" + to_string(r.drafters) + "', but " + std::string(why_none) +
                                "; name others, or auto, which takes what is there");
}

}  // namespace outrider
