// FakeModel: a LanguageModel whose numbers are written by hand and which fails on command.
//
// The row after a context is a pure function of the context's tokens, so every expectation can be
// computed by hand, and any path through a tree can be checked against a fresh call. It holds
// the caller to the interface's REQUIRES: a violation aborts the test. With a rollback other
// than kAny it keeps as little as the interface allows.
//
// Hidden states: with n_hidden the state of a token is the last n_hidden tokens up to it, each as
// its id + 1, zeros in front. With n_hidden_in the model is a head: its row function gets the
// tokens that the state names and the token itself, so that a head with the target's function
// guesses as the target says, if all states are of the right tokens. It holds the caller to that as
// far as its own text reaches. With n_encoded it takes encoded states only, its own among them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/language_model.h"
#include "model/sampler.h"
#include "model/vocabulary.h"

namespace outrider::testing {

// Log-probabilities (unnormalised) of the next token after `context`: [n_vocab].
using RowFunction = std::function<std::vector<float>(std::span<const Token> context)>;

// A row function with seeded, context-dependent numbers: spread 0 is uniform, 3 is quite certain.
// It looks at the last `memory` tokens only.
RowFunction random_rows(std::int32_t n_vocab, std::uint64_t seed, float spread,
                        std::size_t memory = 3);

// `rows` plus seeded noise of the given size: a draft that agrees more the smaller it is.
RowFunction noisy_rows(RowFunction rows, std::uint64_t seed, float noise);

class FakeModel : public LanguageModel {
 public:
  FakeModel(Capabilities capabilities, RowFunction rows);

  const Capabilities& capabilities() const override { return capabilities_; }
  Pos length(SeqId seq) const override;
  std::int32_t room(SeqId seq) const override;
  Status evaluate(std::span<const EvalItem> items) override;
  std::span<const float> logits(std::size_t item, NodeId node) const override;
  std::span<const float> hidden(std::size_t item, std::size_t token) const override;
  Status encode(std::span<const float> rows, std::vector<float>* encoded) override;
  Status commit(SeqId seq, std::span<const NodeId> path) override;
  Status truncate(SeqId seq, Pos length) override;
  Status share(SeqId from, SeqId to, Pos length) override;
  // Its text's bytes.
  Result<std::vector<std::uint8_t>> save(SeqId seq) override;
  std::uint64_t saved_bytes(SeqId seq) const override { return text(seq).size(); }
  Status restore(SeqId seq, std::span<const std::uint8_t> bytes, Pos length) override;
  void set_interrupt(const std::atomic<bool>* flag) override { interrupt_ = flag; }

  // The next evaluate() calls end with these, in order; an ok Status lets one pass.
  void fail_evaluate(std::vector<Status> statuses);
  // The next encode() calls end likewise.
  void fail_encode(std::vector<Status> statuses);
  // The next commit() calls end likewise.
  void fail_commit(std::vector<Status> statuses);
  // Any evaluation that would hold more tokens than this, all sequences together, fails with
  // kResourceExhausted. -1: no limit. `told`: room() knows of it.
  void set_total_cells(std::int64_t cells, bool told = false) {
    total_cells_ = cells;
    room_tells_ = told;
  }
  // The next share() calls end likewise, with `to` empty.
  void fail_share(std::vector<Status> statuses);
  // From now on the model is gone for good, as one whose process has died.
  void die(Status why);
  Status health() const override { return dead_; }
  // Called inside evaluate(), before anything is done: to raise flags at that moment.
  void on_evaluate(std::function<void()> hook) { hook_ = std::move(hook); }
  // Called when an evaluation has succeeded, with the number of its tokens.
  void on_evaluated(std::function<void(std::int64_t)> hook) { after_ = std::move(hook); }

  bool waits(SeqId seq) const;  // for a commit
  bool is_interrupted() const { return interrupt_ != nullptr && interrupt_->load(); }  // any thread

  // What was evaluated so far: calls and tokens.
  std::int64_t evaluations() const { return evaluations_; }
  std::int64_t tokens_evaluated() const { return tokens_evaluated_; }
  std::int64_t rows_encoded() const { return rows_encoded_; }
  const std::vector<Token>& text(SeqId seq) const;
  std::int64_t shares() const { return shares_; }  // that succeeded
  std::int64_t saves() const { return saves_; }

 private:
  // What of a sequence is tentative.
  struct Tentative {
    bool open = false;
    std::vector<Token> prefix;
    std::optional<TokenTree> tree;

    std::int32_t size() const {
      return static_cast<std::int32_t>(prefix.size()) + (tree ? tree->size() : 0);
    }
  };
  // An item of the last evaluate().
  struct Evaluated {
    NodeId first_new;
    std::vector<std::vector<float>> rows;    // [new nodes][n_vocab]
    std::vector<std::vector<float>> hidden;  // [prefix and new nodes][n_hidden]
  };

  Status check(std::span<const EvalItem> items) const;
  Status check_item(const EvalItem& item) const;
  void run(const EvalItem& item);
  std::vector<Token> seen_context(std::vector<Token> context, const EvalItem& item,
                                  std::size_t token) const;
  Tentative& tentative(SeqId seq) { return tentative_[static_cast<std::size_t>(seq)]; }
  const Tentative& tentative(SeqId seq) const { return tentative_[static_cast<std::size_t>(seq)]; }

  Capabilities capabilities_;
  RowFunction rows_;
  std::vector<std::vector<Token>> texts_;  // [n_sequences]
  std::vector<Tentative> tentative_;       // [n_sequences]
  std::vector<Evaluated> evaluated_;
  std::deque<Status> evaluate_failures_;
  std::deque<Status> encode_failures_;
  std::deque<Status> commit_failures_;
  std::deque<Status> share_failures_;
  std::function<void()> hook_;
  std::function<void(std::int64_t)> after_;
  const std::atomic<bool>* interrupt_ = nullptr;
  std::int64_t total_cells_ = -1;
  bool room_tells_ = false;
  Status dead_;
  std::int64_t evaluations_ = 0;
  std::int64_t tokens_evaluated_ = 0;
  std::int64_t rows_encoded_ = 0;
  std::int64_t shares_ = 0;
  std::int64_t saves_ = 0;
};

// Tokens are single bytes 'a', 'b', ... unless pieces are given; token `end` (if any) ends the
// text.
class FakeVocabulary : public Vocabulary {
 public:
  explicit FakeVocabulary(std::int32_t size, Token end = kNoToken,
                          std::map<Token, std::string> pieces = {});

  std::int32_t size() const override { return static_cast<std::int32_t>(pieces_.size()); }
  std::string_view piece(Token token) const override;
  bool is_end_of_generation(Token token) const override { return token == end_; }
  Result<std::vector<Token>> tokenize(std::string_view text, bool add_special,
                                      bool parse_special) const override;
  Result<std::string> detokenize(const std::vector<Token>& tokens) const override;
  // No chat template, unless use_chat() was called: then by testing/simple_chat.h. Any byte is
  // then some token.
  Result<ChatPrompt> chat_prompt(const std::vector<ChatMessage>& messages,
                                 const ChatOptions& options) const override;
  void use_chat() { chats_ = true; }
  SpecialTokens special() const override { return special_; }
  void set_special(const SpecialTokens& special) { special_ = special; }
  // Control tokens are "<ID>".
  std::string_view spelled(Token token) const override;

 private:
  std::vector<std::string> pieces_;
  std::vector<std::string> names_;  // of control tokens
  Token end_;
  bool chats_ = false;
  SpecialTokens special_;
};

// Temperature only; 0 keeps the argmax. No llama.cpp needed.
class FakeSampler : public Sampler {
 public:
  explicit FakeSampler(float temperature) : temperature_(temperature) {}
  Distribution apply(std::span<const float> logits) override;
  void accept(Token token) override { accepted_.push_back(token); }
  bool has_state() const override { return false; }
  bool greedy() const override { return temperature_ <= 0.0f; }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<FakeSampler>(*this); }

  const std::vector<Token>& accepted() const { return accepted_; }

 private:
  float temperature_;
  Token only_ = kNoToken;
  float only_logit_ = 0.0f;
  std::vector<Token> accepted_;
};

}  // namespace outrider::testing
