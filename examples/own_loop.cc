// A decode loop of one's own on llama.cpp, with Outrider's drafters in it.
//
//     own_loop MODEL.gguf PROMPT [MAX_TOKENS [DRAFT_TOKENS]]
//
// Nothing of Outrider's engine takes part: the program owns its model, its context, its batches and
// its sampling (greedy here). What it adds to plain decoding is five lines, marked (1) to (5). With
// DRAFT_TOKENS 0 the same loop decodes plainly; the text is the same.
#include <llama.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "draft/draft_chain.h"
#include "draft/ngram_drafter.h"

namespace {

using outrider::Token;

struct Delete {
  void operator()(llama_model* model) const { llama_model_free(model); }
  void operator()(llama_context* context) const { llama_free(context); }
};
using Model = std::unique_ptr<llama_model, Delete>;
using Context = std::unique_ptr<llama_context, Delete>;

constexpr int kContext = 2048;  // tokens
constexpr int kBatch = 512;

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

void print(const llama_vocab* vocab, Token token) {
  char piece[256];
  const int n = llama_token_to_piece(vocab, token, piece, sizeof(piece), 0, /*special=*/false);
  if (n > 0) std::fwrite(piece, 1, static_cast<std::size_t>(n), stdout);
}

// The target's token behind the `row`-th token of the last batch.
Token pick(llama_context* context, const llama_vocab* vocab, int row) {
  const float* logits = llama_get_logits_ith(context, row);
  return static_cast<Token>(std::max_element(logits, logits + llama_vocab_n_tokens(vocab)) -
                            logits);
}

// Evaluates `tokens` behind the first `n_past` of the cache, with a row of logits for each.
void evaluate(llama_context* context, std::span<const Token> tokens, int n_past) {
  llama_batch batch = llama_batch_init(static_cast<int>(tokens.size()), 0, 1);
  for (const Token token : tokens) {
    const int i = batch.n_tokens++;
    batch.token[i] = token;
    batch.pos[i] = n_past + i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  const int status = llama_decode(context, batch);
  llama_batch_free(batch);
  if (status != 0) fail("llama_decode failed with " + std::to_string(status));
}

void generate(const Model& model, const Context& context, const std::string& prompt, int max_tokens,
              int draft_tokens) {
  const llama_vocab* vocab = llama_model_get_vocab(model.get());
  std::vector<Token> text = tokenize(vocab, prompt);
  if (static_cast<int>(text.size()) + max_tokens + draft_tokens > kContext) {
    fail("prompt and text are longer than the context of " + std::to_string(kContext) + " tokens");
  }
  // Everything but the last token; that one is the root of the first step.
  int n_past = 0;
  while (n_past + 1 < static_cast<int>(text.size())) {
    const int n = std::min(kBatch, static_cast<int>(text.size()) - 1 - n_past);
    evaluate(context.get(),
             std::span(text).subspan(static_cast<std::size_t>(n_past), static_cast<std::size_t>(n)),
             n_past);
    n_past += n;
  }

  // Methods, best first: the first that has something drafts.
  outrider::NgramDrafter ngrams;
  outrider::DraftChain chain({&ngrams});
  chain.begin(text);  // (1) optional: draft() notices a new text, too

  const std::size_t end = text.size() + static_cast<std::size_t>(max_tokens);
  bool ended = false;
  while (!ended && text.size() < end) {
    const int room =
        static_cast<int>(end - text.size()) - 1;  // the target's own token comes on top
    const outrider::Result<std::span<const Token>> draft =
        chain.draft(text, std::min(draft_tokens, room));  // (2)
    if (!draft.ok()) fail(draft.status().message());

    std::vector<Token> batch = {text.back()};
    batch.insert(batch.end(), draft->begin(), draft->end());
    evaluate(context.get(), batch, n_past);

    // Walk the draft as far as the target says the same, then take the target's own token.
    int n_accepted = 0;
    for (;;) {
      const Token said = pick(context.get(), vocab, n_accepted);
      text.push_back(said);
      ended = llama_vocab_is_eog(vocab, said);
      if (!ended) print(vocab, said);
      const bool held = n_accepted < static_cast<int>(draft->size()) &&
                        said == (*draft)[static_cast<std::size_t>(n_accepted)];
      if (!held) break;
      ++n_accepted;
      if (ended) break;
    }
    (void)chain.accept(n_accepted);  // (3) of the draft only; the target's own is never counted
    n_past = static_cast<int>(text.size()) - 1;
    llama_memory_seq_rm(llama_get_memory(context.get()), 0, n_past, -1);  // what did not hold
  }
  std::printf("\n");
  std::fprintf(stderr, "%s\n", chain.statistics_text().c_str());  // (4)
  chain.reset();                                                  // (5) before another text
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: own_loop MODEL.gguf PROMPT [MAX_TOKENS [DRAFT_TOKENS]]\n");
    return 2;
  }
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  const int max_tokens = argc > 3 ? std::clamp(std::atoi(argv[3]), 1, 1024) : 64;
  const int draft_tokens = argc > 4 ? std::clamp(std::atoi(argv[4]), 0, 64) : 8;
  const Model model(llama_model_load_from_file(argv[1], llama_model_default_params()));
  if (!model) fail(std::string("cannot load '") + argv[1] + "'");
  const Context context = open_context(model.get());
  if (!context) fail("cannot make a context");
  generate(model, context, argv[2], max_tokens, draft_tokens);
  return 0;
}
