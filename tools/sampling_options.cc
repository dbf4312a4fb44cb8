#include "tools/sampling_options.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <random>

#include "lab/prompt_file.h"
#include "llama/grammar/gbnf.h"
#include "llama/grammar/json_schema.h"
#include "tools/options.h"
#include "tools/report.h"
#include "tools/usage.h"

namespace outrider::tools {
namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

void add_filter_options(OptionGroup& group, SamplingOptions& o) {
  group.add_number("--temp", o.temperature,
                   "temperature, at least 0; 0 always takes the likeliest token");
  group.add_integer("--top-k", o.top_k, -1, kMaxInt32, "keep the K likeliest tokens; 0 or -1: all");
  group.add_number("--top-p", o.top_p,
                   "keep the likeliest tokens whose chances sum to P, above 0 to 1; 1: all");
  group.add_number("--min-p", o.min_p,
                   "keep tokens at least P times as likely as the likeliest, 0 to 1; 0: all");
  group.add_number("--typical", o.typical_p,
                   "keep the most typical tokens whose chances sum to P (locally typical "
                   "sampling), above 0 to 1; 1: all");
  group.add_number("--top-n-sigma", o.top_n_sigma,
                   "keep tokens whose logits are within N standard deviations of the best; 0 or "
                   "less: all");
  group.add_number("--xtc-probability", o.xtc_probability,
                   "chance, 0 to 1, that a step leaves out all likely tokens but the least likely "
                   "of them; 0: never");
  group.add_number("--xtc-threshold", o.xtc_threshold,
                   "what is likely for --xtc-probability, 0 to 1; above 0.5: nothing");
  group.add_number("--dynatemp-range", o.dynatemp_range,
                   "temperature by entropy, between --temp less and --temp plus this; 0: fixed");
  group.add_number("--dynatemp-exp", o.dynatemp_exponent,
                   "exponent of the entropy for --dynatemp-range, at least 0");
}

void add_penalty_options(OptionGroup& group, SamplingArguments& a) {
  SamplingOptions& o = a.options;
  group.add_integer("--repeat-last-n", o.repeat_last_n, 0, SamplingOptions::kMaxHistory,
                    "last tokens of prompt and text that the penalties look at; 0: none");
  group.add_number("--repeat-penalty", o.repeat_penalty,
                   "divides the logits of tokens that occurred (multiplies negative ones); 1: off");
  group.add_number("--frequency-penalty", o.frequency_penalty,
                   "taken off a token's logit for each time it occurred");
  group.add_number("--presence-penalty", o.presence_penalty,
                   "taken off a token's logit once if it occurred");
  group.add_number("--dry-multiplier", o.dry_multiplier,
                   "DRY: penalty on tokens that would go on with a repetition; 0: off");
  group.add_number("--dry-base", o.dry_base,
                   "DRY: base of the penalty's growth with the repetition's length, at least 1");
  group.add_integer("--dry-allowed-length", o.dry_allowed_length, 0, kMaxInt32,
                    "DRY: length of repetitions from which on the penalty grows");
  group.add_integer("--dry-penalty-last-n", o.dry_penalty_last_n, 0, SamplingOptions::kMaxHistory,
                    "DRY: last tokens of prompt and text to look at; 0: none");
  group.add_texts(
      "--dry-sequence-breaker", a.dry_breakers, "TEXT",
      "DRY: what ends a repetition, instead of newline, ':', '\"' and '*'; may be given "
      "several times; none: nothing");
  group.add_integer("--mirostat", o.mirostat, 0, 2,
                    "keep the text's surprise near a target, in place of the filters and "
                    "penalties: version 1 or 2; 0: off");
  group.add_number("--mirostat-ent", o.mirostat_tau,
                   "mirostat's target surprise in bits a token, at least 0");
  group.add_number("--mirostat-lr", o.mirostat_eta, "mirostat's learning rate, at least 0");
  group.add_texts("--logit-bias", a.logit_bias, "ID(+/-)BIAS",
                  "added to a token's logit, such as 15043+1 or 15043-inf; may be given several "
                  "times");
  group.add_switch("--ignore-eos", o.ignore_eos, "never say a token that ends the text");
}

void add_constraint_options(OptionGroup& group, SamplingArguments& a) {
  group.add_text("--grammar", a.grammar_file, "FILE",
                 "the text keeps to the grammar in this file (GBNF, from its rule 'root')");
  group.add_text("--json-schema", a.schema_file, "FILE",
                 "the text is JSON by the schema in this file");
  group.add_texts("--grammar-trigger", a.options.grammar_triggers, "TEXT",
                  "the grammar or schema binds only from where the text first says this; may be "
                  "given several times");
}

// "15043+1" as llama.cpp's --logit-bias.
LogitBias parse_logit_bias(const std::string& text) {
  LogitBias bias;
  const char* const end = text.data() + text.size();
  const std::from_chars_result id = std::from_chars(text.data(), end, bias.token);
  float value = 0.0f;
  if (id.ec == std::errc() && id.ptr != end && (*id.ptr == '+' || *id.ptr == '-')) {
    const std::from_chars_result number = std::from_chars(id.ptr + 1, end, value);
    if (number.ec == std::errc() && number.ptr == end && value >= 0.0f) {
      bias.bias = *id.ptr == '-' ? -value : value;
      return bias;
    }
  }
  throw UsageError("--logit-bias is '" + text +
                   "', but must be a token's id, + or -, and a number, such as 15043+1 or "
                   "15043-inf");
}

// Empty when it can be used.
Status check_constraint_text(const SamplingOptions& o) {
  if (!o.grammar.empty()) return llama::check_gbnf(o.grammar).status();
  const Result<std::string> grammar = llama::grammar_from_json_schema(o.json_schema);
  if (!grammar.ok()) return grammar.status();
  return llama::check_gbnf(*grammar).status();
}

}  // namespace

void add_sampling_options(CLI::App& app, SamplingArguments& a) {
  OptionGroup group(app, "Sampling");
  group.add_integer(
      "-n,--max-tokens", a.max_tokens, -1, std::numeric_limits<std::int32_t>::max(),
      "tokens to generate at most; -1: until the model ends its text or the context is "
      "full");
  group.add_integer("--seed", a.seed, -1, std::numeric_limits<std::int64_t>::max(),
                    "the same seed gives the same text, with speculation (under the coupled rule) "
                    "or without; -1: a random "
                    "one, which the result tells");
  add_filter_options(group, a.options);
  add_penalty_options(group, a);
  add_constraint_options(group, a);
  for (const char* name : {"--top-k", "--top-p", "--min-p", "--typical", "--top-n-sigma",
                           "--xtc-probability", "--dynatemp-range", "--repeat-penalty",
                           "--frequency-penalty", "--presence-penalty", "--dry-multiplier"}) {
    a.filters.push_back(app.get_option(name));
  }
}

void add_stop_option(CLI::App& app, SamplingArguments& a) {
  OptionGroup(app, "Sampling")
      .add_texts("--stop", a.stop, "TEXT",
                 "end before this text would be said; may be given several times");
}

void add_logprobs_option(CLI::App& app, SamplingArguments& a) {
  OptionGroup(app, "Sampling")
      .add_integer("--logprobs", a.logprobs, -1, 20,
                   "report each token's log-probability before the samplers, and those of the N "
                   "likeliest, in the result (--json); -1: none");
}

void check_sampling(SamplingArguments& a) {
  for (const CLI::Option* filter : a.filters) {
    if (a.options.mirostat == 0 || filter->count() == 0) continue;
    throw UsageError(filter->get_name() + " cannot be used with --mirostat " +
                     std::to_string(a.options.mirostat) +
                     ", which takes the place of filters and penalties; leave it out");
  }
  a.options.logit_bias.clear();
  for (const std::string& text : a.logit_bias) {
    a.options.logit_bias.push_back(parse_logit_bias(text));
  }
  if (!a.dry_breakers.empty()) a.options.dry_sequence_breakers.clear();
  for (const std::string& breaker : a.dry_breakers) {  // as llama.cpp: "none" undoes those before
    if (breaker == "none") {
      a.options.dry_sequence_breakers.clear();
    } else {
      a.options.dry_sequence_breakers.push_back(breaker);
    }
  }
  SamplingOptions checked = a.options;  // the files are read later
  if (a.grammar_file) checked.grammar = "root";
  if (a.schema_file) checked.json_schema = "{}";
  const Status status = validate(checked);
  if (!status.ok()) throw UsageError(status.message());
  for (const std::string& stop : a.stop) {
    if (stop.empty()) throw UsageError("--stop is '', but must be at least one character");
  }
}

int read_constraint(SamplingArguments& a) {
  if (!a.grammar_file && !a.schema_file) return kDone;
  const std::string option = a.grammar_file ? "--grammar" : "--json-schema";
  const std::string& path = a.grammar_file ? *a.grammar_file : *a.schema_file;
  Result<std::string> text = lab::read_all(path);
  if (!text.ok()) return fail(text.status().with_context(option));
  // An empty text would mean no constraint.
  Status status = text->empty() ? invalid_argument("the file is empty") : Status();
  if (status.ok()) {
    (a.grammar_file ? a.options.grammar : a.options.json_schema) = std::move(*text);
    status = check_constraint_text(a.options);
  }
  if (status.ok()) return kDone;
  print_error(option + " '" + path + "': " + status.message());
  return kWrongUsage;
}

std::uint64_t chosen_seed(const SamplingArguments& a) {
  if (a.seed >= 0) return static_cast<std::uint64_t>(a.seed);
  std::random_device random;
  return random() & 0xFFFFFFFFU;
}

}  // namespace outrider::tools
