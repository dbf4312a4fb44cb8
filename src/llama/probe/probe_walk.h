// What a probe does with its model: goes to a place in the cache, takes steps there, goes back.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/probe/probe.h"
#include "model/language_model.h"

namespace outrider::llama {

using ProbeRow = std::vector<float>;  // [n_vocab]

// Uses what it is given for as long as it lives. Every call may return kCancelled.
class ProbeWalk {
 public:
  // Independent streams of random tokens.
  enum class Stream : std::uint64_t { kBase = 1, kWrong, kOthers, kPiece, kStretch = 4096 };

  ProbeWalk(LanguageModel& model, const ProbeOptions& options);

  // The options' starts that fit, ascending.
  const std::vector<std::int32_t>& starts() const { return starts_; }
  LanguageModel& model() { return model_; }

  // Puts sequence 0 at the start with this index: it has a base text, and as many cells are in use.
  Status go_to(std::int32_t start);

  // Empties sequence 0.
  Status clear();

  // Tokens of sequence 0 at the start that it was put to.
  Pos base_length() const { return base_length_; }

  // Evaluates `token` alone behind sequence 0 and keeps it. `row` gets its logits.
  Status single_step(Token token, ProbeRow* row);

  // Evaluates and keeps `tokens` in batches of `width`; `last` gets the last one's logits.
  Status feed(std::span<const Token> tokens, std::int32_t width, ProbeRow* last);

  // Gives sequences 1 to `n_others`, which are empty, texts of different lengths.
  Status prepare_others(std::int32_t n_others);

  // The model's own, unless the probe is cancelled.
  Status evaluate(std::span<const EvalItem> items);

  // A token that may be evaluated, a pure function of the seed, `stream` (and `substream`) and
  // `index`.
  Token random_token(Stream stream, std::uint64_t index, std::uint64_t substream = 0) const;
  bool is_usable(Token token) const;

  double now_ms() const { return now_ms_(); }
  double single_ms() const { return single_ms_; }  // what the last single step took; 0 before

 private:
  Status lengthen(std::int32_t cells);

  LanguageModel& model_;
  const ProbeOptions& options_;
  std::vector<std::int32_t> starts_;
  std::vector<Token> usable_;  // ascending
  std::function<double()> now_ms_;
  double single_ms_ = 0.0;
  std::int32_t at_ = -1;  // the start that sequence 0 stands at, or -1
  Pos base_length_ = 0;   // of sequence 0 there
};

TokenTree chain_of(std::span<const Token> tokens);  // REQUIRES: not empty
std::vector<NodeId> first_nodes(std::int32_t n);    // of a chain

bool same_bits(std::span<const float> a, std::span<const float> b);

// "by up to 0.81, and the most likely token changes".
std::string describe_difference(std::span<const float> got, std::span<const float> wanted);

}  // namespace outrider::llama
