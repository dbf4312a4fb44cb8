#include "rpcserver/seed_options.h"

#include <algorithm>
#include <limits>
#include <string>

namespace outrider::rpcserver {
namespace {

using json::Json;
using Request = CompletionRequest;

float number(const Json& value) { return static_cast<float>(value.get<double>()); }
std::int64_t whole(const Json& value) { return value.get<std::int64_t>(); }
std::int32_t whole32(const Json& value) { return static_cast<std::int32_t>(whole(value)); }

// In (0, 1], where 0 and less keep one token, as they did, and more than 1 is off.
float share_kept(const Json& p) {
  return std::clamp(number(p), std::numeric_limits<float>::min(), 1.0f);
}

// -1: the whole context, which is known later.
std::int32_t history(const Json& n) {
  return std::clamp(whole32(n), -1, SamplingOptions::kMaxHistory);
}

const SeedOption kOptions[] = {
    {.key = "n_predict",
     .field = "max_tokens",
     .otherwise = std::int64_t{-1},
     // Nothing would be read for an answer of no tokens; the one token is not shown.
     .apply = [](const Json& v, Request& r) { r.max_tokens = whole(v) == 0 ? 1 : whole32(v); }},
    {.key = "temperature",
     .field = "temp",
     .otherwise = 0.8,
     .apply = [](const Json& v, Request& r) { r.sampling.temperature = std::max(0.0f, number(v)); },
     .shown = "temp"},
    {.key = "top_k",
     .field = "top_k",
     .otherwise = std::int64_t{40},
     .apply = [](const Json& v, Request& r) { r.sampling.top_k = std::max(whole32(v), -1); }},
    {.key = "top_p",
     .field = "top_p",
     .otherwise = 0.95,
     .apply = [](const Json& v, Request& r) { r.sampling.top_p = share_kept(v); }},
    {.key = "tfs_z",
     .otherwise = 1.0,
     .only = "must be 1 (off): tail-free sampling is gone from llama.cpp"},
    {.key = "typical_p",
     .field = "typical",
     .otherwise = 1.0,
     .apply = [](const Json& v, Request& r) { r.sampling.typical_p = share_kept(v); }},
    {.key = "repeat_last_n",
     .field = "repeat_last_n",
     .otherwise = std::int64_t{64},
     .apply = [](const Json& v, Request& r) { r.sampling.repeat_last_n = history(v); }},
    {.key = "repeat_penalty",
     .field = "repeat_penalty",
     .otherwise = 1.1,
     .apply = [](const Json& v, Request& r) { r.sampling.repeat_penalty = number(v); }},
    {.key = "presence_penalty",
     .field = "presence_penalty",
     .otherwise = 0.0,
     .apply = [](const Json& v, Request& r) { r.sampling.presence_penalty = number(v); }},
    {.key = "frequency_penalty",
     .field = "frequency_penalty",
     .otherwise = 0.0,
     .apply = [](const Json& v, Request& r) { r.sampling.frequency_penalty = number(v); }},
    {.key = "mirostat",
     .field = "mirostat",
     .otherwise = std::int64_t{0},
     .range = field_named(sampling_fields(), "mirostat").range,
     .apply = [](const Json& v, Request& r) { r.sampling.mirostat = whole32(v); }},
    {.key = "mirostat_tau",
     .field = "mirostat_ent",
     .otherwise = 5.0,
     .range = field_named(sampling_fields(), "mirostat_ent").range,
     .apply = [](const Json& v, Request& r) { r.sampling.mirostat_tau = number(v); }},
    {.key = "mirostat_eta",
     .field = "mirostat_lr",
     .otherwise = 0.1,
     .range = field_named(sampling_fields(), "mirostat_lr").range,
     .apply = [](const Json& v, Request& r) { r.sampling.mirostat_eta = number(v); }},
    {.key = "penalize_nl",
     .otherwise = true,
     .apply = [](const Json& v, Request& r) { r.sampling.penalize_newline = v.get<bool>(); }},
    {.key = "n_keep",
     .field = "shift_keep",
     .otherwise = std::int64_t{0},
     .apply = [](const Json& v, Request& r) { r.shift_keep = whole32(v); }},
    {.key = "grammar",
     .field = "grammar",
     .otherwise = std::string_view(),
     .apply = [](const Json& v, Request& r) { r.sampling.grammar = v.get<std::string>(); }},
    {.key = "n_probs", .field = "logprobs", .otherwise = std::int64_t{0}},
    {.key = "ignore_eos",
     .field = "ignore_eos",
     .otherwise = false,
     .apply = [](const Json& v, Request& r) { r.sampling.ignore_eos = v.get<bool>(); }},
    {.key = "n_beams",
     .otherwise = std::int64_t{0},
     .only = "must be 0 (off): beam search is gone from llama.cpp"},
    {.key = "stream_tokens", .otherwise = false}};

}  // namespace

std::span<const SeedOption> seed_options() { return kOptions; }

}  // namespace outrider::rpcserver
