// The suffix drafter: guesses that the text goes on as it, or a text in a store, did before.
//
// Idea. What was written once is often written again: a file that is edited, a log, a quotation, a
// tool's output. The end of the text is looked up in the text itself (draft/suffix/suffix_index.h)
// and in stores of other texts (draft/suffix/suffix_store.h); what followed there becomes a tree,
// its nodes the likeliest ones by counts, match length and recency (draft/suffix/suffix_blend.h),
// each with its chance. Where the counts agree the tree is a chain.
//
// Stores are the operator's choice. A sequence's own text is its own: another sequence, and the
// next text of the same one beyond what it shares with it, never sees it. Finished texts that are
// remembered (draft/suffix/suffix_memory.h) are seen by requests of their namespace only.
//
// Cost, measured (docs/benchmarks-counts.md): microseconds a step, no model, about 120 bytes a
// token of text.
//
// Source: SuffixDecoding, arXiv 2411.04975; SAM-Decoding, arXiv 2411.10666. Tested by
// suffix_drafter_test.cc and tests/suffix_output_test.cc.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draft/base/lookup_drafter.h"
#include "draft/suffix/suffix_growth.h"

namespace outrider {

class SuffixDrafter : public LookupDrafter {
 public:
  static constexpr std::string_view kName = "suffix";

  // `n_sequences`: as the engine has. The stores are for the target's tokenizer
  // (StoreFile::check_tokenizer) and may be shared.
  explicit SuffixDrafter(std::int32_t n_sequences, SuffixStores stores = {},
                         const SuffixBlend& blend = {}, const SuffixReach& reach = {});

  std::string_view name() const override { return kName; }
  // An automaton cannot be cut: when less is kept than it holds it begins anew, and reads what is
  // kept again at the next draft (about 0.1 microseconds a token).
  Status begin(SeqId seq, std::size_t kept) override;
  // Reads what the text has gained, then grows the tree. kCancelled between two requests, and
  // within a long text (a million tokens take a second to read), which the next call reads on.
  Status draft(std::span<DraftRequest> requests) override;
  void accept(SeqId seq, std::span<const Token> text) override;
  void end(SeqId seq) override;
  void set_interrupt(const std::atomic<bool>* flag) override { interrupt_ = flag; }
  // Its own text is always there to guess from.
  std::string limit_reason(SeqId /*seq*/) const override { return ""; }
  // A damaged store is no longer used, and named here; so is one that was taken away while `seq`
  // was drafted for.
  std::string note(SeqId seq) const override;

  // Stores that come and go between two calls of draft(); what is known of the sequences stays. A
  // store takes the place of one of the same path. May throw std::bad_alloc, with nothing changed.
  void add_store(std::shared_ptr<const SuffixStore> store);
  // `reason`: for the sequences that lose it. Needs no memory. Unknown paths are ignored.
  void remove_store(std::string_view path, std::string reason);

  // Where earlier texts are looked up, for requests that name a namespace; null (as at the start):
  // nowhere. Must outlive this, or be replaced.
  void use_memory(SuffixMemory* memory) { memory_ = memory; }
  // Likewise, in a memory of its own. REQUIRES: SuffixMemory's of `max_tokens`
  void remember(std::size_t max_tokens);

  // The above, for those who name no drafter: a file is a store.
  void add_file(const OpenedDrafterFile& file) override;
  void remove_file(const DrafterFile& file, std::string reason) override {
    remove_store(file.path, std::move(reason));
  }
  TextMemory* memory() const override { return memory_; }

  // Of all indexes and of what is reused between requests.
  std::size_t memory_bytes() const override;

  // Empty when every index is sound, else what is broken.
  std::string check_integrity() const;

 private:
  static constexpr std::size_t kReadAtOnce = 16384;  // tokens, in 2 ms

  bool interrupted() const {
    return interrupt_ != nullptr && interrupt_->load(std::memory_order_relaxed);
  }

  SuffixGrowth growth_;
  std::vector<SuffixIndex> indexes_;  // [n_sequences]
  SuffixMemory* memory_ = nullptr;
  std::unique_ptr<SuffixMemory> own_memory_;   // memory_, where it was made by remember()
  std::vector<SuffixMemory::Cursor> cursors_;  // [n_sequences]
  std::string removal_;                        // of the last store that was taken away
  std::vector<bool> touched_;                  // [n_sequences] drafted for when it was
  const std::atomic<bool>* interrupt_ = nullptr;
};

Result<std::shared_ptr<const LookupFile>> open_suffix_file(const std::string& path,
                                                           const TokenizerId& tokenizer);
std::unique_ptr<LookupDrafter> make_suffix_drafter(const LookupSettings& settings);

inline constexpr std::array<FileOption, 1> kSuffixOptions = {
    {{.name = "suffix_store",
      .help = "a store of texts for the drafter suffix, made by 'outrider suffix build'; may be "
              "given several times"}}};

inline constexpr LookupKind kSuffixKind = {
    .name = SuffixDrafter::kName,
    .help = "what followed the text's last tokens earlier, in it or in a store",
    .unasked = Unasked::kAlways,
    .remembers = true,
    .shape = {.branches = true, .stops = true},
    .files = LookupFiles{.open = open_suffix_file,
                         .options = kSuffixOptions,
                         .one = "a store of 'outrider suffix build'",
                         .many = "stores"},
    .make = make_suffix_drafter};

}  // namespace outrider
