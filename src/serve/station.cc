#include "serve/station.h"

#include <cassert>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "draft/drafter_table.h"
#include "engine/step_width.h"
#include "store/crc32c.h"

namespace outrider {
namespace {

EngineOptions engine_options(const Target& target, const RuntimeOptions& options) {
  EngineOptions result;
  result.prompt_chunk = options.prompt_chunk;
  result.prompt_share = static_cast<double>(options.prompt_share);
  result.reuse_prefix = options.reuse_prefix;
  result.now_ms = options.now_ms;
  result.planned_width = planned_width(target.exactness());
  result.costs = target.costs();
  return result;
}

}  // namespace

Station::Station(std::shared_ptr<Target> target, const RuntimeOptions& options)
    : options_(engine_options(*target, options)),
      target_(std::move(target)),
      experiences_(target_->experiences()),
      prompts_(options.prompt_cache, static_cast<std::uint64_t>(options.prompt_cache_mib) << 20,
               target_->state_identity()),
      remember_folder_(options.remember_folder),
      not_kept_(options.not_kept) {
  const Capabilities& capabilities = target_->capabilities();
  const LookupSettings settings = {
      .n_vocab = capabilities.n_vocab,
      .n_sequences = capabilities.n_sequences,
      .remember_tokens = static_cast<std::size_t>(options.remember_tokens)};
  for (const LookupKind* kind : lookup_kinds()) lookups_.push_back(kind->make(settings));
  for (const AddedDrafter& added : options.drafters) {
    lookups_.push_back(added.make(settings));
    assert(lookups_.back() != nullptr && lookups_.back()->name() == added.name);
  }
  make_engine();
  prompts_.restore(*engine_);
  recall_texts();
}

Station::~Station() { keep_learned(); }

void Station::keep_learned() {
  if (!engine_ || std::exchange(kept_, true)) return;
  tell_unless_kept([this] { return keep_texts(); });
  tell_of_experience(experiences_.keep(*engine_));
  tell_unless_kept([this] {
    const Status saved =
        draft_ ? prompts_.save(*engine_, draft_->drafter.get(), draft_->state_identity)
               : prompts_.save(*engine_, nullptr, "");
    return saved.with_context("prompt_cache");
  });
}

std::vector<std::string> Station::notes() const {
  std::vector<std::string> notes = target_->notes();
  notes.insert(notes.end(), prompts_.notes().begin(), prompts_.notes().end());
  if (!memory_note_.empty()) notes.push_back(memory_note_);
  return notes;
}

// For this target's file and tokenizer.
std::string Station::memory_file() const {
  if (remember_folder_.empty() || memory() == nullptr) return "";
  const std::string& path = target_->info().path;
  const std::uint32_t of_path = crc32c(std::as_bytes(std::span(path.data(), path.size())));
  char name[64];
  std::snprintf(name, sizeof name, "remembered-%016llx-%08x.store",
                static_cast<unsigned long long>(tokenizer().hash), of_path);
  return (std::filesystem::path(remember_folder_) / name).string();
}

// A file that cannot be used is named in a note.
void Station::recall_texts() {
  const std::string path = memory_file();
  if (path.empty()) return;
  const Status loaded = memory()->recall(path, tokenizer());
  if (loaded.ok() || loaded.code() == StatusCode::kNotFound) return;
  memory_note_ = "remember_folder: " + loaded.message() + "; it is ignored";
}

// What cannot be kept is forgotten. May throw std::bad_alloc.
Status Station::keep_texts() const {
  const std::string path = memory_file();
  if (path.empty()) return Status();
  (void)make_private_folder(remember_folder_);  // somebody may have removed it
  return memory()->keep(path, tokenizer()).with_context("remember_folder");
}

// Never throws.
void Station::tell_unless_kept(const std::function<Status()>& keep) const {
  try {
    const Status kept = keep();
    if (!kept.ok() && not_kept_) not_kept_(kept);
  } catch (const std::exception&) {  // no memory, neither for keeping nor for telling
  }
}

// Once: it is kept again and again, and what fails fails every time.
void Station::tell_of_experience(const Status& kept) {
  if (kept.ok() || told_of_experience_) return;
  told_of_experience_ = true;
  tell_unless_kept([&kept] { return kept.with_context("the drafters' experience"); });
}

void Station::after_step() {
  prompts_.drop_used(*engine_);
  tell_of_experience(experiences_.keep_now_and_then(*engine_));
}

void Station::make_engine() {
  // The draft model's place is the first; drafters are listed by their places.
  std::vector<Drafter*> drafters = {draft_ ? draft_->drafter.get() : nullptr};
  if (target_->head() != nullptr) drafters.push_back(target_->head());
  for (const std::unique_ptr<LookupDrafter>& lookup : lookups_) drafters.push_back(lookup.get());
  engine_ = std::make_unique<Engine>(target_->model(), target_->vocabulary(), std::move(drafters),
                                     options_);
  if (draft_) introduce_draft();
  if (target_->head() != nullptr) experiences_.recall(*engine_, *target_->head());
  for (const std::unique_ptr<LookupDrafter>& lookup : lookups_) {
    experiences_.recall(*engine_, *lookup);
  }
}

Status Station::set_draft(std::unique_ptr<Draft> draft, const std::string& reason) {
  if (draft_) {
    tell_of_experience(experiences_.keep(*engine_));
    engine_->detach(draft_->drafter.get(), reason);
  }
  draft_ = std::move(draft);
  if (!draft_) return Status();
  const Status attached = engine_->attach(draft_->drafter.get());
  if (!attached.ok()) {
    draft_.reset();
    return attached;
  }
  prompts_.restore(*engine_, *draft_->drafter, draft_->state_identity);
  introduce_draft();
  return Status();
}

void Station::introduce_draft() {
  // Passes of one token are about as dear as the weights that they read.
  const double target_bytes = static_cast<double>(target_->info().size_bytes);
  const double draft_bytes = static_cast<double>(draft_->info.size_bytes);
  const std::optional<std::size_t> place = engine_->find_drafter(draft_->drafter->name());
  if (place && target_bytes > 0.0) {
    engine_->planner().expect_passes(*place, draft_bytes / target_bytes);
  }
  experiences_.recall(*engine_, *draft_->drafter, draft_->identity);
}

const TokenizerId& Station::tokenizer() const {
  std::call_once(tokenizer_once_, [this] { tokenizer_ = tokenizer_id(target_->vocabulary()); });
  return tokenizer_;
}

LookupDrafter* Station::find(std::string_view drafter) const {
  for (const std::unique_ptr<LookupDrafter>& lookup : lookups_) {
    if (lookup->name() == drafter) return lookup.get();
  }
  return nullptr;
}

void Station::add_file(const OpenedDrafterFile& file) {
  LookupDrafter* const lookup = find(file.file.drafter);
  if (lookup != nullptr) lookup->add_file(file);
}

void Station::remove_file(const DrafterFile& file, std::string reason) {
  LookupDrafter* const lookup = find(file.drafter);
  if (lookup != nullptr) lookup->remove_file(file, std::move(reason));
}

std::uint64_t Station::memory_of(std::string_view drafter) const {
  if (draft_ != nullptr && draft_->drafter->name() == drafter) return draft_->info.size_bytes;
  const bool is_head = target_->head() != nullptr && target_->head()->name() == drafter;
  if (is_head) return target_->head_bytes();
  const LookupDrafter* const lookup = find(drafter);
  return lookup == nullptr ? 0 : lookup->memory_bytes();
}

std::optional<MemoryStatus> Station::remembered_by(std::string_view drafter) const {
  const LookupDrafter* const lookup = find(drafter);
  if (lookup == nullptr || lookup->memory() == nullptr) return std::nullopt;
  return lookup->memory()->stats();
}

TextMemory* Station::memory() const {
  for (const LookupKind* kind : lookup_kinds()) {
    if (!kind->remembers) continue;
    const LookupDrafter* const lookup = find(kind->name);
    if (lookup != nullptr && lookup->memory() != nullptr) return lookup->memory();
  }
  return nullptr;
}

Remembered Station::remember(std::string name_space, std::span<const Token> text) {
  Remembered result{.name_space = std::move(name_space)};
  assert(remembers());
  try {
    result.tokens = static_cast<std::int64_t>(memory()->add(result.name_space, text));
    if (result.tokens == 0) result.reason = "the text is too short to guess from";
  } catch (const std::exception&) {
    result.reason = "out of memory";  // short enough to need none
  }
  return result;
}

void Station::restart() {
  engine_.reset();
  if (remembers()) memory()->clear();  // a text may be read in part
  for (SeqId seq = 0; seq < target_->capabilities().n_sequences; ++seq) {
    if (draft_) draft_->drafter->end(seq);
    if (target_->head() != nullptr) target_->head()->end(seq);
    for (const std::unique_ptr<LookupDrafter>& lookup : lookups_) lookup->end(seq);
    (void)target_->model().truncate(seq, 0);
  }
  make_engine();
}

}  // namespace outrider
