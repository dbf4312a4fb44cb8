#include "rpcserver/responses.h"

#include <algorithm>
#include <cmath>

#include "api/completion_json.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

// A byte that is only a part of a character cannot stand in a JSON text.
std::string token_text(const std::string& piece) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(piece.size() == 1 ? piece[0] : 0);
  return byte < 0x80 ? piece : std::string("byte: \\x") + kDigits[byte >> 4] + kDigits[byte & 15];
}

Json timings_json(const Timings& t, std::int64_t n_predicted) {
  return {{"prompt_n", t.prompt_tokens_evaluated},
          {"prompt_ms", t.prompt_ms},
          {"prompt_per_token_ms", api::ratio(t.prompt_ms, t.prompt_tokens_evaluated)},
          {"prompt_per_second", api::per_second(t.prompt_tokens_evaluated, t.prompt_ms)},
          {"predicted_n", n_predicted},
          {"predicted_ms", t.predicted_ms},
          {"predicted_per_token_ms", api::ratio(t.predicted_ms, t.predicted_after_first)},
          {"predicted_per_second", api::per_second(t.predicted_after_first, t.predicted_ms)}};
}

}  // namespace

Json with_error(Json answer, const Status& error) {
  answer["error"] = error.message();
  if (!error.field().empty()) answer["field"] = error.field();
  return answer;
}

Json failure(const Status& error) { return with_error({{"success", false}}, error); }

Json sync_failure(const Status& error) { return with_error({{"status", 400}}, error); }

Json nothing_new() {
  return {{"success", true},
          {"completion_updates", Json::array()},
          {"finished", false},
          {"prompt_processing_progress", 0.0}};
}

Json prompt_stats_json(const PromptStats& stats) {
  return {{"n_ctx", stats.n_ctx},     {"total_prompt_tokens", stats.n_tokens_asked},
          {"n_past", stats.n_cached}, {"truncated", stats.truncated()},
          {"cached", stats.cached},   {"to_eval", stats.to_evaluate}};
}

Json probabilities_json(const std::vector<SaidToken>& tokens) {
  Json list = Json::array();
  for (const SaidToken& token : tokens) {
    if (!token.logprob) continue;
    Json candidates = Json::array();
    for (const RankedToken& candidate : token.logprob->top) {
      if (!std::isfinite(candidate.logprob)) continue;  // the chain has removed it
      candidates.push_back(
          {{"tok_str", token_text(candidate.text)}, {"prob", std::exp(candidate.logprob)}});
    }
    list.push_back(
        {{"content", token_text(token.logprob->chosen.text)}, {"probs", std::move(candidates)}});
  }
  return list;
}

Json final_response(const FinalParts& parts, const CompletionResult& result) {
  const RequestOptions& options = *parts.options;
  const Completion& c = result.completion;
  const bool failed = c.finish == FinishReason::kError;
  // One token was asked for where there was only the prompt to read.
  const std::int64_t n_predicted =
      options.n_predict() == 0 ? 0 : static_cast<std::int64_t>(c.tokens.size());
  // The last token that was said has not been evaluated.
  const std::int64_t n_cached = result.prompt.n_tokens + std::max<std::int64_t>(n_predicted - 1, 0);
  const bool at_stop = c.finish == FinishReason::kStop;
  Json response = {
      {"content", parts.content},
      {"stop", true},
      {"model", parts.model},
      {"tokens_predicted", n_predicted},
      {"tokens_evaluated", result.prompt.n_tokens_asked},
      {"generation_settings",
       generation_settings(options, result.prompt.n_ctx, parts.model, c.seed, parts.streamed)},
      {"prompt", options.prompt_as_sent},
      {"truncated", result.prompt.truncated() || result.shifted},
      {"stopped_eos", at_stop && c.stop.empty()},
      {"stopped_word", at_stop && !c.stop.empty()},
      {"stopped_limit", c.finish == FinishReason::kLength},
      {"stopped_cancelled", c.finish == FinishReason::kCancelled},
      {"stopping_word", c.stop},
      {"tokens_cached", std::min(n_cached, result.prompt.n_ctx)},
      {"timings", timings_json(c.timings, n_predicted)},
      {"speculation", api::speculation_json(c.speculation, result.exactness)},
      {"status", failed ? 500 : 200}};
  api::add_kernels(result.kernels, &response);
  if (failed) response["error"] = c.error.message();
  if (options.n_probs() > 0)
    response["completion_probabilities"] = probabilities_json(parts.tokens);
  return response;
}

std::string drop_partial_stop(std::string text, const std::vector<std::string>& stop) {
  std::size_t longest = 0;
  for (const std::string& word : stop) {
    for (std::size_t n = std::min(word.size(), text.size()); n > longest; --n) {
      if (text.compare(text.size() - n, n, word, 0, n) == 0) longest = n;
    }
  }
  text.resize(text.size() - longest);
  return text;
}

}  // namespace outrider::rpcserver
