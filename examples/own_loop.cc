// A decode loop of one's own on llama.cpp, with Outrider's drafters and acceptance rule in it.
//
//     own_loop MODEL.gguf PROMPT [MAX_TOKENS [DRAFT_TOKENS [TEMPERATURE [SEED]]]]
//
// Nothing of Outrider's engine takes part: the program owns its model, its context and its batches.
// The loop is the one of llama.cpp's common/speculative.h, step for step: begin, then again and
// again (1) draft, (2) one batch of the last token and the draft, (3) verify, (4) accept, (5) go on
// with what was said; at the end the statistics, and reset. With DRAFT_TOKENS 0 the same loop
// decodes plainly; with the same seed the text is the same, at every temperature.
// docs/library.md goes through it.
#include <llama.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "draft/draft_chain.h"
#include "draft/ngram/ngram_drafter.h"
#include "draft/suffix/suffix_drafter.h"
#include "verify/coupled.h"

namespace {

using outrider::Distribution;
using outrider::NodeId;
using outrider::Result;
using outrider::Token;

constexpr int kContext = 2048;  // tokens
constexpr int kBatch = 512;

struct Options {
  int max_tokens = 64;
  int draft_tokens = 8;
  float temperature = 0.0f;
  std::uint64_t seed = 1;
};

struct Delete {
  void operator()(llama_model* model) const { llama_model_free(model); }
  void operator()(llama_context* context) const { llama_free(context); }
};
using Model = std::unique_ptr<llama_model, Delete>;
using Context = std::unique_ptr<llama_context, Delete>;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "own_loop: %s\n", what.c_str());
  std::exit(1);
}

// Flash attention and a Q8_0 cache: with these a batch gives most quantised models the very numbers
// of single steps, so that drafts cannot change the text (docs/decisions.md).
Context open_context(llama_model* model) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = kContext;
  params.n_batch = kBatch;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.type_k = GGML_TYPE_Q8_0;
  params.type_v = GGML_TYPE_Q8_0;
  return Context(llama_init_from_model(model, params));
}

std::vector<Token> tokenize(const llama_vocab* vocab, const std::string& text) {
  std::vector<Token> tokens(text.size() + 8);
  const int n = llama_tokenize(vocab, text.data(), static_cast<int>(text.size()), tokens.data(),
                               static_cast<int>(tokens.size()), /*add_special=*/true,
                               /*parse_special=*/true);
  if (n <= 0) fail("the prompt has no tokens");
  tokens.resize(static_cast<std::size_t>(n));
  return tokens;
}

// Evaluates `tokens` behind the first `n_past` of the cache, with a row of logits for each.
void evaluate(llama_context* context, std::span<const Token> tokens, std::size_t n_past) {
  llama_batch batch = llama_batch_init(static_cast<int>(tokens.size()), 0, 1);
  for (const Token token : tokens) {
    const int i = batch.n_tokens++;
    batch.token[i] = token;
    batch.pos[i] = static_cast<llama_pos>(n_past) + i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  const int status = llama_decode(context, batch);
  llama_batch_free(batch);
  if (status != 0) fail("llama_decode failed with " + std::to_string(status));
}

// What the acceptance rule asks of a target: the distribution behind a node, whose row in the last
// batch has the node's number. A sampler chain of one's own would change the logits in at(), and
// learn of the token in accept().
class Target : public outrider::TargetDistributions {
 public:
  Target(llama_context* context, const llama_vocab* vocab, float temperature)
      : context_(context), vocab_(vocab), temperature_(temperature) {}

  Result<Distribution> at(NodeId node) override {
    const std::span<const float> row(llama_get_logits_ith(context_, node),
                                     static_cast<std::size_t>(llama_vocab_n_tokens(vocab_)));
    if (temperature_ > 0.0f) return Distribution{.logits = row, .scale = 1.0f / temperature_};
    best_ = static_cast<Token>(outrider::argmax(row));  // greedy: one candidate
    return Distribution{.logits = std::span(&kCertain, 1), .tokens = std::span(&best_, 1)};
  }
  Result<Distribution> peek(NodeId node) override { return at(node); }
  bool accept(Token token) override { return !llama_vocab_is_eog(vocab_, token); }

 private:
  static constexpr float kCertain = 0.0f;
  llama_context* context_;
  const llama_vocab* vocab_;
  float temperature_;
  Token best_ = outrider::kNoToken;
};

void print(const llama_vocab* vocab, std::span<const Token> tokens) {
  for (const Token token : tokens) {
    char piece[256];
    const int n = llama_token_to_piece(vocab, token, piece, sizeof(piece), 0, /*special=*/false);
    if (n > 0) std::fwrite(piece, 1, static_cast<std::size_t>(n), stdout);
  }
}

void generate(llama_context* context, const llama_vocab* vocab, const std::string& prompt,
              const Options& options) {
  std::vector<Token> text = tokenize(vocab, prompt);
  const std::size_t end = text.size() + static_cast<std::size_t>(options.max_tokens);
  if (end > static_cast<std::size_t>(kContext)) {
    fail("prompt and text are longer than the context of " + std::to_string(kContext) + " tokens");
  }
  // All of the prompt but its last token, which is the root of the first step.
  for (std::size_t n_past = 0; n_past + 1 < text.size(); n_past += kBatch) {
    const std::size_t n = std::min<std::size_t>(kBatch, text.size() - 1 - n_past);
    evaluate(context, std::span(text).subspan(n_past, n), n_past);
  }

  // Methods, best first: the first that has something drafts, and gets the credit.
  outrider::SuffixDrafter suffix(/*n_sequences=*/1);
  outrider::NgramDrafter ngrams;
  outrider::DraftChain chain({&suffix, &ngrams});
  Target target(context, vocab, options.temperature);
  chain.begin(text);
  bool ended = false;
  while (!ended && text.size() < end) {
    // (1) Draft; the target's own token comes on top.
    const int room = static_cast<int>(end - text.size()) - 1;
    const Result<std::span<const Token>> draft =
        chain.draft(text, std::min(options.draft_tokens, room));
    if (!draft.ok()) fail(draft.status().message());

    // (2) The last token and the draft in one batch.
    std::vector<Token> batch = {text.back()};
    batch.insert(batch.end(), draft->begin(), draft->end());
    evaluate(context, batch, text.size() - 1);

    // (3) Verify: as much of the draft as the target says too, and one token of its own.
    outrider::TokenTree tree(text.back());
    for (const Token token : *draft) tree.add(tree.size() - 1, token, 1.0f, /*proposed_by=*/1);
    const Result<outrider::Walk> walk = outrider::verify_coupled(
        tree, static_cast<outrider::Pos>(text.size()) - 1, options.seed, target);
    if (!walk.ok()) fail(walk.status().message());

    // (4) Accept: what held of the draft; the target's own token is never counted.
    const outrider::Status told = chain.accept(static_cast<std::int32_t>(walk->accepted()));
    if (!told.ok()) fail(told.message());

    // (5) Go on, without what did not hold.
    text.insert(text.end(), walk->emitted.begin(), walk->emitted.end());
    print(vocab, walk->emitted);
    ended = llama_vocab_is_eog(vocab, text.back());
    llama_memory_seq_rm(llama_get_memory(context), 0, static_cast<llama_pos>(text.size()) - 1, -1);
  }
  std::printf("\n");
  std::fprintf(stderr, "%s\n", chain.statistics_text().c_str());
  chain.reset();  // before an unrelated text; statistics stay
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: own_loop MODEL.gguf PROMPT [MAX_TOKENS [DRAFT_TOKENS [TEMPERATURE "
                 "[SEED]]]]\n");
    return 2;
  }
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  Options options;
  if (argc > 3) options.max_tokens = std::clamp(std::atoi(argv[3]), 1, 1024);
  if (argc > 4) options.draft_tokens = std::clamp(std::atoi(argv[4]), 0, 64);
  if (argc > 5) options.temperature = std::clamp(std::strtof(argv[5], nullptr), 0.0f, 10.0f);
  if (argc > 6) options.seed = std::strtoull(argv[6], nullptr, 10);
  const Model model(llama_model_load_from_file(argv[1], llama_model_default_params()));
  if (!model) fail(std::string("cannot load '") + argv[1] + "'");
  const Context context = open_context(model.get());
  if (!context) fail("cannot make a context");
  generate(context.get(), llama_model_get_vocab(model.get()), argv[2], options);
  return 0;
}
