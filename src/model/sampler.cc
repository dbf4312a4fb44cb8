#include "model/sampler.h"

#include <cmath>
#include <string>

namespace outrider {
namespace {

// Written as !(inside) wherever it is used, so that NaN is outside.
bool inside(float value, float low, float high) { return value >= low && value <= high; }
bool finite_from(float value, float low) { return value >= low && std::isfinite(value); }

Status wrong(const std::string& option, const std::string& value, const char* wanted) {
  return invalid_argument(option + " is " + value + ", but must be " + wanted);
}
Status wrong(const char* option, float value, const char* wanted) {
  return wrong(option, std::to_string(value), wanted);
}
Status wrong(const char* option, std::int32_t value, const char* wanted) {
  return wrong(option, std::to_string(value), wanted);
}

Status check_filters(const SamplingOptions& o) {
  if (!finite_from(o.temperature, 0.0f)) {
    return wrong("--temp", o.temperature, "a finite number of at least 0 (0 is greedy)");
  }
  if (!(o.top_p > 0.0f && o.top_p <= 1.0f)) {
    return wrong("--top-p", o.top_p, "above 0 and at most 1 (1 switches it off)");
  }
  if (!inside(o.min_p, 0.0f, 1.0f)) {
    return wrong("--min-p", o.min_p, "from 0 to 1 (0 switches it off)");
  }
  if (!(o.typical_p > 0.0f && o.typical_p <= 1.0f)) {
    return wrong("--typical", o.typical_p, "above 0 and at most 1 (1 switches it off)");
  }
  if (!finite_from(o.dynatemp_range, 0.0f)) {
    return wrong("--dynatemp-range", o.dynatemp_range, "at least 0 (0 switches it off)");
  }
  if (!finite_from(o.dynatemp_exponent, 0.0f)) {
    return wrong("--dynatemp-exp", o.dynatemp_exponent, "a finite number of at least 0");
  }
  if (!std::isfinite(o.top_n_sigma)) {
    return wrong("--top-n-sigma", o.top_n_sigma, "a finite number (0 or less switches it off)");
  }
  if (!inside(o.xtc_probability, 0.0f, 1.0f)) {
    return wrong("--xtc-probability", o.xtc_probability, "from 0 to 1 (0 switches it off)");
  }
  if (!inside(o.xtc_threshold, 0.0f, 1.0f)) {
    return wrong("--xtc-threshold", o.xtc_threshold, "from 0 to 1 (above 0.5 switches it off)");
  }
  return Status();
}

Status check_penalties(const SamplingOptions& o) {
  if (o.repeat_last_n < 0 || o.repeat_last_n > SamplingOptions::kMaxHistory) {
    return wrong("--repeat-last-n", o.repeat_last_n, "from 0 (off) to 1048576");
  }
  if (!(o.repeat_penalty > 0.0f && std::isfinite(o.repeat_penalty) &&
        std::isfinite(1.0f / o.repeat_penalty))) {
    return wrong("--repeat-penalty", o.repeat_penalty, "finite and above 0 (1 switches it off)");
  }
  if (!std::isfinite(o.frequency_penalty)) {
    return wrong("--frequency-penalty", o.frequency_penalty, "a finite number");
  }
  if (!std::isfinite(o.presence_penalty)) {
    return wrong("--presence-penalty", o.presence_penalty, "a finite number");
  }
  if (!finite_from(o.dry_multiplier, 0.0f)) {
    return wrong("--dry-multiplier", o.dry_multiplier, "at least 0 (0 switches it off)");
  }
  if (!finite_from(o.dry_base, 1.0f)) {
    return wrong("--dry-base", o.dry_base, "a finite number of at least 1");
  }
  if (o.dry_allowed_length < 0) {
    return wrong("--dry-allowed-length", o.dry_allowed_length, "at least 0");
  }
  if (o.dry_penalty_last_n < 0 || o.dry_penalty_last_n > SamplingOptions::kMaxHistory) {
    return wrong("--dry-penalty-last-n", o.dry_penalty_last_n, "from 0 (off) to 1048576");
  }
  for (const std::string& breaker : o.dry_sequence_breakers) {
    if (!breaker.empty() && breaker.size() <= 40 && breaker.find('\0') == std::string::npos) {
      continue;
    }
    return wrong("--dry-sequence-breaker", "'" + breaker + "'", "1 to 40 bytes without NUL");
  }
  for (const LogitBias& bias : o.logit_bias) {
    if (bias.token < 0) {
      return invalid_argument("--logit-bias names token " + std::to_string(bias.token) +
                              ", but a token's id is at least 0");
    }
    if (std::isfinite(bias.bias) || bias.bias == -INFINITY) continue;
    return wrong("--logit-bias of token " + std::to_string(bias.token), std::to_string(bias.bias),
                 "a finite number or -inf");
  }
  return Status();
}

// llama.cpp's mirostat takes the place of all filters and penalties and says nothing about those
// that are asked for as well. Here each must be off, or at its default.
Status check_mirostat(const SamplingOptions& o) {
  if (o.mirostat < 0 || o.mirostat > 2) {
    return wrong("--mirostat", o.mirostat, "0 (off), 1 or 2");
  }
  if (!finite_from(o.mirostat_tau, 0.0f)) {
    return wrong("--mirostat-ent", o.mirostat_tau, "a finite number of at least 0");
  }
  if (!finite_from(o.mirostat_eta, 0.0f)) {
    return wrong("--mirostat-lr", o.mirostat_eta, "a finite number of at least 0");
  }
  if (o.mirostat == 0) return Status();
  if (!(o.temperature > 0.0f)) {
    return invalid_argument(
        "--temp is 0, but must be above 0 with --mirostat, which learns from what is drawn");
  }
  const SamplingOptions usual;
  const std::pair<const char*, bool> used[] = {
      {"--top-k", o.top_k > 0 && o.top_k != usual.top_k},
      {"--top-p", o.top_p < 1.0f && o.top_p != usual.top_p},
      {"--min-p", o.min_p > 0.0f && o.min_p != usual.min_p},
      {"--typical", o.typical_p < 1.0f},
      {"--dynatemp-range", o.dynatemp_range > 0.0f},
      {"--top-n-sigma", o.top_n_sigma > 0.0f},
      {"--xtc-probability", o.xtc_probability > 0.0f},
      {"--repeat-penalty", o.repeat_penalty != 1.0f},
      {"--frequency-penalty", o.frequency_penalty != 0.0f},
      {"--presence-penalty", o.presence_penalty != 0.0f},
      {"--dry-multiplier", o.dry_multiplier != 0.0f},
  };
  for (const auto& [option, is_used] : used) {
    if (!is_used) continue;
    return invalid_argument(std::string(option) + " cannot be used with --mirostat " +
                            std::to_string(o.mirostat) +
                            ", which takes the place of filters and penalties; leave it out");
  }
  return Status();
}

Status check_constraint(const SamplingOptions& o) {
  if (!o.grammar.empty() && !o.json_schema.empty()) {
    return invalid_argument("--json-schema cannot be used with --grammar; give one of them");
  }
  if (!o.grammar_triggers.empty() && !o.constrained()) {
    return invalid_argument("--grammar-trigger needs --grammar or --json-schema");
  }
  if (o.grammar_triggers.size() > 64) {
    return invalid_argument("--grammar-trigger is given " +
                            std::to_string(o.grammar_triggers.size()) +
                            " times, at most 64 can be");
  }
  for (const std::string& trigger : o.grammar_triggers) {
    if (!trigger.empty() && trigger.size() <= 256 && trigger.find('\0') == std::string::npos) {
      continue;
    }
    return wrong("--grammar-trigger", "'" + trigger + "'", "1 to 256 bytes without NUL");
  }
  if (o.ignore_eos && o.constrained()) {
    return invalid_argument("--ignore-eos cannot be used with " +
                            std::string(o.grammar.empty() ? "--json-schema" : "--grammar") +
                            ", whose end is the end of the text");
  }
  return Status();
}

}  // namespace

Status validate(const SamplingOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check_filters(options));
  OUTRIDER_RETURN_IF_ERROR(check_penalties(options));
  OUTRIDER_RETURN_IF_ERROR(check_mirostat(options));
  return check_constraint(options);
}

}  // namespace outrider
