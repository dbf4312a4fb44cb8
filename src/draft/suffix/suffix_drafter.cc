#include "draft/suffix/suffix_drafter.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace outrider {

SuffixDrafter::SuffixDrafter(std::int32_t n_sequences, SuffixStores stores,
                             const SuffixBlend& blend, const SuffixReach& reach)
    : growth_(std::move(stores), blend, reach),
      indexes_(static_cast<std::size_t>(n_sequences)),
      cursors_(indexes_.size()),
      touched_(indexes_.size(), false) {}

Status SuffixDrafter::begin(SeqId seq, std::size_t kept) {
  SuffixIndex& index = indexes_[static_cast<std::size_t>(seq)];
  if (kept < index.size()) index.clear();
  cursors_[static_cast<std::size_t>(seq)] = SuffixMemory::Cursor();
  touched_[static_cast<std::size_t>(seq)] = false;
  return Status();
}

// Reading the tokens can wait until the next draft.
void SuffixDrafter::accept(SeqId /*seq*/, std::span<const Token> /*text*/) {}

void SuffixDrafter::end(SeqId seq) {
  indexes_[static_cast<std::size_t>(seq)].clear();
  cursors_[static_cast<std::size_t>(seq)] = SuffixMemory::Cursor();
  touched_[static_cast<std::size_t>(seq)] = false;
}

void SuffixDrafter::add_store(std::shared_ptr<const SuffixStore> store) {
  const std::string path = store->file().path();
  growth_.add_store(store);  // first: it may fail
  growth_.remove_store(path);
  growth_.add_store(std::move(store));
}

void SuffixDrafter::add_file(const OpenedDrafterFile& file) {
  std::shared_ptr<const SuffixStore> store =
      std::dynamic_pointer_cast<const SuffixStore>(file.contents);
  assert(store != nullptr);
  add_store(std::move(store));
}

void SuffixDrafter::remember(std::size_t max_tokens) {
  own_memory_ = std::make_unique<SuffixMemory>(max_tokens);
  use_memory(own_memory_.get());
}

void SuffixDrafter::remove_store(std::string_view path, std::string reason) {
  if (!growth_.remove_store(path)) return;
  removal_ = std::move(reason);
  touched_.assign(indexes_.size(), true);
}

Status SuffixDrafter::draft(std::span<DraftRequest> requests) {
  for (DraftRequest& request : requests) {
    if (interrupted()) return cancelled("drafting was interrupted");
    if (request.max_nodes <= 0) continue;
    SuffixIndex& index = indexes_[static_cast<std::size_t>(request.seq)];
    if (request.text.size() < index.size()) index.clear();
    while (index.size() < request.text.size()) {
      if (interrupted()) return cancelled("drafting was interrupted");
      const std::size_t n = std::min(kReadAtOnce, request.text.size() - index.size());
      for (const Token token : request.text.subspan(index.size(), n)) index.append(token);
    }
    std::span<const SuffixMemory::Place> remembered;
    if (memory_ != nullptr && !request.name_space.empty()) {
      SuffixMemory::Cursor& cursor = cursors_[static_cast<std::size_t>(request.seq)];
      memory_->look_up(request.name_space, request.text, cursor);
      remembered = cursor.places;
    }
    growth_.grow(index, request, remembered);
  }
  return Status();
}

std::string SuffixDrafter::note(SeqId seq) const {
  for (const std::shared_ptr<const SuffixStore>& store : growth_.stores()) {
    const Status damage = store->file().damage();
    if (!damage.ok()) return damage.message();
  }
  if (touched_[static_cast<std::size_t>(seq)]) return removal_;
  return "";
}

std::size_t SuffixDrafter::memory_bytes() const {
  std::size_t bytes = growth_.memory_bytes();
  for (const SuffixIndex& index : indexes_) bytes += index.memory_bytes();
  return bytes;
}

std::string SuffixDrafter::check_integrity() const {
  for (std::size_t i = 0; i < indexes_.size(); ++i) {
    const std::string problem = indexes_[i].check_integrity();
    if (!problem.empty()) return "sequence " + std::to_string(i) + ": " + problem;
  }
  return "";
}

Result<std::shared_ptr<const LookupFile>> open_suffix_file(const std::string& path,
                                                           const TokenizerId& tokenizer) {
  Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(path, tokenizer);
  if (!store.ok()) return store.status();
  return std::shared_ptr<const LookupFile>(*std::move(store));
}

std::unique_ptr<LookupDrafter> make_suffix_drafter(const LookupSettings& settings) {
  std::unique_ptr<SuffixDrafter> drafter = std::make_unique<SuffixDrafter>(settings.n_sequences);
  if (settings.remember_tokens > 0) drafter->remember(settings.remember_tokens);
  return drafter;
}

}  // namespace outrider
