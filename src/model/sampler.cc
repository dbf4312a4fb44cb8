#include "model/sampler.h"

#include <cmath>
#include <string>

namespace outrider {
namespace {

using Options = SamplingOptions;

constexpr Off kOffAt0{Off::Where::kUpTo, 0.0};
constexpr Off kOffAt1{Off::Where::kAt, 1.0};
constexpr Range kAnyNumber{};
constexpr Range kFrom0{.min = 0.0};
constexpr Range kChance{.min = 0.0, .max = 1.0};
constexpr Range kShare{.min = 0.0, .max = 1.0, .above_min = true};
constexpr Range kHistory{.min = 0.0, .max = Options::kMaxHistory};

// llama.cpp's mirostat takes the place of all filters and penalties and says nothing about those
// that are asked for as well. Here each must be off, or at its default.
constexpr std::string_view kMirostat = "mirostat";

constexpr Field<Options> kFields[] = {
    {.name = "temp",
     .help = "temperature; 0 always takes the likeliest token",
     .place = &Options::temperature,
     .range = kFrom0},
    {.name = "top_k",
     .help = "keep so many of the likeliest tokens",
     .place = &Options::top_k,
     .range = {.min = -1.0, .max = kMaxInt32},
     .off = kOffAt0,
     .replaced_by = kMirostat},
    {.name = "top_p",
     .help = "keep the likeliest tokens whose chances sum to this; 0 keeps one",
     .place = &Options::top_p,
     .range = kChance,
     .off = {Off::Where::kFrom, 1.0},
     .replaced_by = kMirostat},
    {.name = "min_p",
     .help = "keep tokens at least so many times as likely as the likeliest",
     .place = &Options::min_p,
     .range = kChance,
     .off = kOffAt0,
     .replaced_by = kMirostat},
    {.name = "typical",
     .help = "keep the most typical tokens whose chances sum to this (locally typical sampling)",
     .place = &Options::typical_p,
     .range = kShare,
     .off = {Off::Where::kFrom, 1.0},
     .replaced_by = kMirostat},
    {.name = "top_n_sigma",
     .help = "keep tokens whose logits are within so many standard deviations of the best",
     .place = &Options::top_n_sigma,
     .range = kAnyNumber,
     .off = kOffAt0,
     .replaced_by = kMirostat},
    {.name = "xtc_probability",
     .help = "chance that a step leaves out all likely tokens but the least likely of them",
     .place = &Options::xtc_probability,
     .range = kChance,
     .off = kOffAt0,
     .replaced_by = kMirostat},
    {.name = "xtc_threshold",
     .help = "what is likely for xtc_probability; above 0.5: nothing",
     .place = &Options::xtc_threshold,
     .range = kChance},
    {.name = "dynatemp_range",
     .help = "temperature by entropy, between temp less and temp plus this",
     .place = &Options::dynatemp_range,
     .range = kFrom0,
     .off = kOffAt0,
     .replaced_by = kMirostat},
    {.name = "dynatemp_exp",
     .help = "exponent of the entropy for dynatemp_range",
     .place = &Options::dynatemp_exponent,
     .range = kFrom0},
    {.name = "repeat_last_n",
     .help = "last tokens of prompt and text that the penalties look at",
     .place = &Options::repeat_last_n,
     .range = kHistory,
     .off = kOffAt0},
    {.name = "repeat_penalty",
     .help = "divides the logits of tokens that occurred (multiplies negative ones)",
     .place = &Options::repeat_penalty,
     .range = {.min = 0.0, .above_min = true},
     .off = kOffAt1,
     .replaced_by = kMirostat},
    {.name = "frequency_penalty",
     .help = "taken off a token's logit for each time it occurred",
     .place = &Options::frequency_penalty,
     .off = {Off::Where::kAt, 0.0},
     .replaced_by = kMirostat},
    {.name = "presence_penalty",
     .help = "taken off a token's logit once if it occurred",
     .place = &Options::presence_penalty,
     .off = {Off::Where::kAt, 0.0},
     .replaced_by = kMirostat},
    {.name = "dry_multiplier",
     .help = "DRY: penalty on tokens that would go on with a repetition",
     .place = &Options::dry_multiplier,
     .range = kFrom0,
     .off = kOffAt0,
     .replaced_by = kMirostat},
    {.name = "dry_base",
     .help = "DRY: base of the penalty's growth with the repetition's length",
     .place = &Options::dry_base,
     .range = {.min = 1.0}},
    {.name = "dry_allowed_length",
     .help = "DRY: length of repetitions from which on the penalty grows",
     .place = &Options::dry_allowed_length,
     .range = {.min = 0.0, .max = kMaxInt32}},
    {.name = "dry_penalty_last_n",
     .help = "DRY: last tokens of prompt and text to look at",
     .place = &Options::dry_penalty_last_n,
     .range = kHistory,
     .off = kOffAt0},
    {.name = "dry_sequence_breaker",
     .help = "DRY: texts that end a repetition, instead of newline, ':', '\"' and '*'",
     .place = &Options::dry_sequence_breakers,
     .range = {.min = 1.0, .max = 40.0},
     .unit = "TEXT",
     .most = 64,  // of each all tokens that have some of it are kept
     .otherwise = "newline, ':', '\"' and '*'"},
    {.name = "mirostat",
     .help = "keep the text's surprise near a target, in place of the filters and penalties: "
             "version 1 or 2",
     .place = &Options::mirostat,
     .range = {.min = 0.0, .max = 2.0},
     .off = kOffAt0},
    {.name = "mirostat_ent",
     .help = "mirostat's target surprise in bits a token",
     .place = &Options::mirostat_tau,
     .range = kFrom0},
    {.name = "mirostat_lr",
     .help = "mirostat's learning rate",
     .place = &Options::mirostat_eta,
     .range = kFrom0},
    {.name = "logit_bias",
     .help = "added to tokens' logits; several of a token add up",
     .place = ByHand{"object | array"},
     .unit = "ID(+/-)BIAS",
     .most = Options::kMaxBiases},
    {.name = "ignore_eos",
     .help = "never say a token that ends the text",
     .place = &Options::ignore_eos},
    {.name = "grammar",
     .help = "a grammar that the text keeps to (GBNF, from its rule 'root')",
     .place = &Options::grammar},
    {.name = "json_schema",
     .help = "the text is JSON by this schema",
     .place = ByHand{"object | string"}},
    {.name = "grammar_trigger",
     .help = "the grammar or schema binds only from where the text first says this",
     .place = &Options::grammar_triggers,
     .range = {.min = 1.0, .max = 256.0},
     .unit = "TEXT",
     .most = 64},
};

Status without_nul(const char* field, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (text.find('\0') == std::string::npos) continue;
    return refused(field, "has a NUL byte, which it cannot have");
  }
  return Status();
}

Status check_logit_bias(const Options& o) {
  OUTRIDER_RETURN_IF_ERROR(check_biases(o.logit_bias.size()));
  for (const LogitBias& bias : o.logit_bias) {
    const std::string token = std::to_string(bias.token);
    if (bias.token < 0) {
      return refused("logit_bias", "names token " + token + ", but a token's id is at least 0");
    }
    if (std::isfinite(bias.bias) || bias.bias == -INFINITY) continue;
    return refused("logit_bias", "of token " + token + " is " + std::to_string(bias.bias) +
                                     ", but must be a finite number or -inf");
  }
  return Status();
}

Status check_mirostat(const Options& o) {
  if (o.mirostat == 0) return Status();
  if (!(o.temperature > 0.0f)) {
    return refused("temp",
                   "is 0, but must be above 0 with mirostat, which learns from what is drawn");
  }
  for (const Field<Options>& field : kFields) {
    if (field.replaced_by != kMirostat || !is_used(field, o)) continue;
    return refused(std::string(field.name), cannot_be_used_with_mirostat(o.mirostat));
  }
  return Status();
}

Status check_constraint(const Options& o) {
  if (!o.grammar.empty() && !o.json_schema.empty()) {
    return refused("json_schema", "cannot be used with grammar; give one of them");
  }
  const bool own = !o.grammar.empty() || !o.json_schema.empty();
  if (own && !o.chat_grammar.gbnf.empty()) {
    return refused(o.grammar.empty() ? "json_schema" : "grammar",
                   "cannot be used together with a chat template's grammar");
  }
  if (!o.grammar_triggers.empty() && !own) {
    return refused("grammar_trigger", "needs grammar or json_schema");
  }
  if (o.ignore_eos && o.constrained()) {
    const std::string with = !o.grammar.empty()       ? "grammar"
                             : !o.json_schema.empty() ? "json_schema"
                                                      : "tools";
    return refused("ignore_eos",
                   "cannot be used with " + with + ", whose end is the end of the text");
  }
  return Status();
}

}  // namespace

std::string cannot_be_used_with_mirostat(std::int32_t version) {
  return "cannot be used with mirostat " + std::to_string(version) +
         ", which takes the place of filters and penalties; leave it out";
}

std::span<const Field<SamplingOptions>> sampling_fields() { return kFields; }

Status check_biases(std::size_t n) {
  if (n <= SamplingOptions::kMaxBiases) return Status();
  return refused("logit_bias", "holds " + std::to_string(n) + " biases, at most " +
                                   std::to_string(SamplingOptions::kMaxBiases) + " can be");
}

Status validate(const SamplingOptions& o) {
  OUTRIDER_RETURN_IF_ERROR(check(sampling_fields(), o));
  if (!std::isfinite(1.0f / o.repeat_penalty)) {
    return wrong_value("repeat_penalty", std::to_string(o.repeat_penalty),
                       "large enough to divide by");
  }
  OUTRIDER_RETURN_IF_ERROR(without_nul("dry_sequence_breaker", o.dry_sequence_breakers));
  OUTRIDER_RETURN_IF_ERROR(without_nul("grammar_trigger", o.grammar_triggers));
  OUTRIDER_RETURN_IF_ERROR(check_logit_bias(o));
  OUTRIDER_RETURN_IF_ERROR(check_mirostat(o));
  return check_constraint(o);
}

}  // namespace outrider
