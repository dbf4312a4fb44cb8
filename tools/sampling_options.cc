#include "tools/sampling_options.h"

#include <limits>
#include <random>

#include "tools/options.h"
#include "tools/usage.h"

namespace outrider::tools {

void add_sampling_options(CLI::App& app, SamplingArguments& a) {
  OptionGroup group(app, "Sampling");
  group.add_integer(
      "-n,--max-tokens", a.max_tokens, -1, std::numeric_limits<std::int32_t>::max(),
      "tokens to generate at most; -1: until the model ends its text or the context is "
      "full");
  group.add_integer("--seed", a.seed, -1, std::numeric_limits<std::int64_t>::max(),
                    "the same seed gives the same text, with speculation or without; -1: a random "
                    "one, which the result tells");
  group.add_number("--temp", a.options.temperature,
                   "temperature, at least 0; 0 always takes the likeliest token");
  group.add_integer("--top-k", a.options.top_k, -1, std::numeric_limits<std::int32_t>::max(),
                    "keep the K likeliest tokens; 0 or -1: all");
  group.add_number("--top-p", a.options.top_p,
                   "keep the likeliest tokens whose chances sum to P, above 0 to 1; 1: all");
  group.add_number("--min-p", a.options.min_p,
                   "keep tokens at least P times as likely as the likeliest, 0 to 1; 0: all");
  group.add_number(
      "--typical", a.options.typical_p,
      "keep the most typical tokens whose chances sum to P (locally typical sampling), "
      "above 0 to 1; 1: all");
}

void add_stop_option(CLI::App& app, SamplingArguments& a) {
  OptionGroup(app, "Sampling")
      .add_texts("--stop", a.stop, "TEXT",
                 "end before this text would be said; may be given several times");
}

void check_sampling(const SamplingArguments& a) {
  const Status status = validate(a.options);
  if (!status.ok()) throw UsageError(status.message());
  for (const std::string& stop : a.stop) {
    if (stop.empty()) throw UsageError("--stop is '', but must be at least one character");
  }
}

std::uint64_t chosen_seed(const SamplingArguments& a) {
  if (a.seed >= 0) return static_cast<std::uint64_t>(a.seed);
  std::random_device random;
  return random() & 0xFFFFFFFFU;
}

}  // namespace outrider::tools
