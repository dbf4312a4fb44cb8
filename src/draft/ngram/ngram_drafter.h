// NgramDrafter: drafts from n-gram caches ("ngram-cache"): lookup decoding.
//
// Idea. Guess a token from the caches (draft/ngram/ngram_lookup.h), put it behind the text, guess
// the next one, and so on: a chain, as long as one of the caches is sure enough. The context cache
// is each sequence's own and goes with its text; the static cache is shared and never written; the
// dynamic one gets a text only when its owner calls learn(), so that no user's text is a source of
// guesses for another unless the operator says so.
//
// Tested by ngram_drafter_test.cc.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "draft/base/lookup_drafter.h"
#include "draft/ngram/ngram_context.h"
#include "draft/ngram/ngram_lookup.h"

namespace outrider {

class NgramDrafter : public LookupDrafter {
 public:
  static constexpr std::string_view kName = "ngram-cache";

  // Null: none. Caches whose ids are not the target's make bad guesses, no worse: the engine drops
  // ids outside the vocabulary. `dynamic` is written by learn() only.
  explicit NgramDrafter(std::shared_ptr<const NgramCache> corpus = nullptr,
                        std::shared_ptr<NgramCache> dynamic = nullptr);

  std::string_view name() const override { return kName; }
  // Keeps what it counted of the first `kept` tokens. REQUIRES: seq >= 0, here and below.
  Status begin(SeqId seq, std::size_t kept) override;
  // A chain; never fails. Neither the sampler nor the shape is looked at.
  Status draft(std::span<DraftRequest> requests) override;
  void accept(SeqId seq, std::span<const Token> text) override;
  void end(SeqId seq) override;
  // Drafting takes microseconds: there is nothing to interrupt.
  void set_interrupt(const std::atomic<bool>* /*flag*/) override {}
  // Its own text is always there to guess from.
  std::string limit_reason(SeqId /*seq*/) const override { return ""; }
  // A cache that was taken away while `seq` was drafted for.
  std::string note(SeqId seq) const override;

  // Caches that come and go between two calls of draft(); what is known of the sequences stays.
  // kStatic or kDynamic; the cache takes the place of the one that is there. A dynamic one that is
  // put here is only read: learn() adds to the constructor's only. Need no memory.
  void set_cache(NgramTier tier, std::shared_ptr<const NgramCache> cache);
  // `reason`: for the sequences that lose it. No effect when there is none.
  void remove_cache(NgramTier tier, std::string reason);

  // Adds what it counted of the text of `seq` to the dynamic cache, if there is one. The text goes
  // on as before; calling it twice counts it twice. Not while another thread reads that cache.
  void learn(SeqId seq);

  // The above, for those who name no drafter: a file is a cache, its tier one of kNgramOptions.
  void add_file(const OpenedDrafterFile& file) override;
  void remove_file(const DrafterFile& file, std::string reason) override;

  // Of the contexts; the shared caches are their owners'.
  std::size_t memory_bytes() const override;

  // Empty, or what is broken in some sequence's cache. Takes long.
  std::string check_integrity() const;

 private:
  NgramContext& context(SeqId seq);
  void draft_one(DraftRequest& request);

  std::shared_ptr<const NgramCache> corpus_;
  std::shared_ptr<const NgramCache> dynamic_;
  std::shared_ptr<NgramCache> learning_;  // dynamic_, where learn() may write; else null
  std::vector<NgramContext> contexts_;    // [sequences seen]
  std::string removal_;                   // of the last cache that was taken away
  std::vector<bool> touched_;             // [contexts_] drafted for when it was
};

// As which cache a file is used; both are only read.
inline constexpr std::array<FileOption, 2> kNgramOptions = {
    {{.name = "ngram_static",
      .help =
          "ngram-cache: what is common in a large corpus, from 'outrider ngram create'; is only "
          "read",
      .tier = "static",
      .tier_help = "a corpus"},
     {.name = "ngram_dynamic",
      .help = "ngram-cache: what earlier texts held; is only read",
      .tier = "dynamic",
      .tier_help = "earlier texts, with stricter thresholds"}}};

Result<std::shared_ptr<const LookupFile>> open_ngram_file(const std::string& path,
                                                          const TokenizerId& tokenizer);
// What such a file holds. REQUIRES: it was opened by open_ngram_file()
std::shared_ptr<const NgramCache> cache_of(const OpenedDrafterFile& file);
std::unique_ptr<LookupDrafter> make_ngram_drafter(const LookupSettings& settings);

inline constexpr LookupKind kNgramKind = {
    .name = NgramDrafter::kName,
    .help = "what followed the last one to four tokens, in it and in the files given",
    .unasked = Unasked::kWithFiles,
    .files = LookupFiles{.open = open_ngram_file,
                         .options = kNgramOptions,
                         .one = "a file of 'outrider ngram create'",
                         .many = "n-gram files",
                         .join_command = "outrider ngram merge"},
    .make = make_ngram_drafter};

}  // namespace outrider
