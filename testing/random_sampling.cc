#include "testing/random_sampling.h"

#include <cmath>
#include <iterator>

namespace outrider::testing {
namespace {

float uniform(std::mt19937& random, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(random);
}

bool chance(std::mt19937& random, unsigned percent) { return random() % 100 < percent; }

std::int32_t below(std::mt19937& random, std::int32_t n) {
  return static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(n));
}

void add_penalties(std::mt19937& random, SamplingOptions& o) {
  if (chance(random, 50)) o.repeat_last_n = below(random, 20);
  if (chance(random, 40)) o.repeat_penalty = uniform(random, 0.5f, 2.0f);
  if (chance(random, 30)) o.frequency_penalty = uniform(random, -1.0f, 2.0f);
  if (chance(random, 30)) o.presence_penalty = uniform(random, -1.0f, 2.0f);
  if (chance(random, 40)) o.dry_multiplier = uniform(random, 0.1f, 3.0f);
  o.dry_base = uniform(random, 1.0f, 3.0f);
  o.dry_allowed_length = below(random, 4);
  if (chance(random, 50)) o.dry_penalty_last_n = below(random, 30);
  if (chance(random, 50)) o.dry_sequence_breakers = {"b", "ca"};
}

void add_biases(std::mt19937& random, std::int32_t n_vocab, SamplingOptions& o) {
  for (std::int32_t i = below(random, 4); i > 0; --i) {
    const float bias = chance(random, 30) ? -INFINITY : uniform(random, -5.0f, 5.0f);
    o.logit_bias.push_back({below(random, n_vocab), bias});
  }
  o.ignore_eos = chance(random, 30);
}

// Each goes on for ever or ends where it can; none gets stuck on the tiny vocabulary.
void add_constraint(std::mt19937& random, SamplingOptions& o) {
  static constexpr const char* kGrammars[] = {
      "root ::= [a-z ]+ (\"!\" | \"\\n\") .*",
      "root ::= ([0-9] [^0-9]+)+",
      "root ::= (\"the\" | \" to\" | \"ing\" | [A-Z])+ \".\"",
      "root ::= item+\nitem ::= \"- \" [^\\n]{1,5} \"\\n\"",
      "root ::= [^\\x00]{7}",
      "root ::= \"é\"? (\"日\" | \"€\" | \"x\")* [a-f]{3,} \"END\"",
  };
  static constexpr const char* kSchemas[] = {
      R"({"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"integer"}}})",
      R"({"type":"array","items":{"enum":["the",1,null]},"minItems":2})",
      R"({"type":"string","pattern":"^[a-f]+-[0-9]{2}$"})",
  };
  static constexpr const char* kTriggers[] = {"e", "t", "in", "\n"};
  o.ignore_eos = false;
  if (chance(random, 30)) {
    o.json_schema = kSchemas[random() % std::size(kSchemas)];
  } else if (chance(random, 40)) {
    const std::string trigger = kTriggers[random() % std::size(kTriggers)];
    const std::string literal = trigger == "\n" ? "\\n" : trigger;
    o.grammar = "root ::= \"" + literal + "\" ([^a-m] | \"e\" [^e])*";
    o.grammar_triggers = {trigger};
  } else {
    o.grammar = kGrammars[random() % std::size(kGrammars)];
  }
}

}  // namespace

SamplingOptions random_filters(std::mt19937& random, std::int32_t n_vocab) {
  SamplingOptions o;
  o.temperature = chance(random, 20) ? 1.0f : uniform(random, 0.1f, 2.0f);
  o.top_k = chance(random, 50) ? 0 : 1 + below(random, 60);
  if (chance(random, 50)) o.top_p = 1.0f;
  if (chance(random, 50)) o.min_p = 0.0f;
  if (chance(random, 20)) o.typical_p = uniform(random, 0.3f, 1.0f);
  if (chance(random, 30)) o.dynatemp_range = uniform(random, 0.0f, 2.0f);
  if (chance(random, 30)) o.dynatemp_exponent = uniform(random, 0.2f, 3.0f);
  if (chance(random, 30)) o.top_n_sigma = uniform(random, 0.5f, 4.0f);
  if (chance(random, 30)) o.xtc_probability = uniform(random, 0.0f, 1.0f);
  o.xtc_threshold = uniform(random, 0.01f, 0.6f);
  add_penalties(random, o);
  add_biases(random, n_vocab, o);
  return o;
}

SamplingOptions random_sampling(std::mt19937& random, std::int32_t n_vocab) {
  SamplingOptions o = random_filters(random, n_vocab);
  if (chance(random, 20)) {  // nothing but a temperature and what else comes
    o = SamplingOptions();
    o.top_k = 0;
    o.top_p = 1.0f;
    o.min_p = 0.0f;
    if (chance(random, 50)) add_penalties(random, o);
  } else if (chance(random, 20)) {
    o = SamplingOptions();
    o.temperature = uniform(random, 0.5f, 1.5f);
    o.mirostat = 1 + below(random, 2);
    o.mirostat_tau = uniform(random, 0.5f, 6.0f);
    o.mirostat_eta = uniform(random, 0.0f, 0.5f);
    add_biases(random, n_vocab, o);
  }
  if (o.mirostat == 0 && chance(random, 15)) o.temperature = 0.0f;
  if (chance(random, 40)) add_constraint(random, o);
  if (o.constrained()) o.ignore_eos = false;
  return o;
}

}  // namespace outrider::testing
