#include "rpcserver/seed_options.h"

#include <algorithm>

namespace outrider::rpcserver {
namespace {

using json::Json;
using Whole = std::int64_t;

// Nothing would be read for an answer of no tokens; the one token is not shown.
Json at_least_one(const Json& n_predict) {
  const Whole n = n_predict.get<Whole>();
  return n == 0 ? 1 : n;
}

Json from_zero(const Json& temperature) { return std::max(0.0, temperature.get<double>()); }
Json from_minus_one(const Json& n) { return std::max(n.get<Whole>(), Whole{-1}); }

// In (0, 1], where 0 and less keep one token, as they did, and more than 1 is off.
Json share_kept(const Json& p) {
  return std::clamp<double>(p.get<double>(), std::numeric_limits<float>::min(), 1.0);
}

constexpr SeedOption kOptions[] = {
    {.key = "n_predict",
     .field = "max_tokens",
     .otherwise = Whole{-1},
     .least = -1,
     .today = at_least_one},
    {.key = "temperature", .field = "temp", .otherwise = 0.8, .today = from_zero, .shown = "temp"},
    {.key = "top_k", .field = "top_k", .otherwise = Whole{40}, .today = from_minus_one},
    {.key = "top_p", .field = "top_p", .otherwise = 0.95, .today = share_kept},
    {.key = "tfs_z",
     .otherwise = 1.0,
     .only = "must be 1 (off): tail-free sampling is gone from llama.cpp"},
    {.key = "typical_p", .field = "typical", .otherwise = 1.0, .today = share_kept},
    {.key = "repeat_last_n", .otherwise = Whole{64}},  // its -1 is the context, known later
    {.key = "repeat_penalty", .field = "repeat_penalty", .otherwise = 1.1},
    {.key = "presence_penalty", .field = "presence_penalty", .otherwise = 0.0},
    {.key = "frequency_penalty", .field = "frequency_penalty", .otherwise = 0.0},
    {.key = "mirostat", .field = "mirostat", .otherwise = Whole{0}, .strict = true},
    {.key = "mirostat_tau", .field = "mirostat_ent", .otherwise = 5.0, .strict = true},
    {.key = "mirostat_eta", .field = "mirostat_lr", .otherwise = 0.1, .strict = true},
    {.key = "penalize_nl", .otherwise = true},  // is no field
    {.key = "n_keep", .field = "shift_keep", .otherwise = Whole{0}, .least = -1},
    {.key = "grammar", .field = "grammar", .otherwise = std::string_view()},
    {.key = "n_probs", .field = "logprobs", .otherwise = Whole{0}, .least = 0},
    {.key = "ignore_eos", .field = "ignore_eos", .otherwise = false},
    {.key = "n_beams",
     .otherwise = Whole{0},
     .only = "must be 0 (off): beam search is gone from llama.cpp"},
    {.key = "stream_tokens", .otherwise = false}};

}  // namespace

std::span<const SeedOption> seed_options() { return kOptions; }

}  // namespace outrider::rpcserver
