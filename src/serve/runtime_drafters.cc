// Drafters' files: ordered by clients, opened by the loading thread, put to work by the decode
// thread; what is remembered; and what is said of the drafters and their absence.
#include <algorithm>
#include <exception>
#include <new>

#include "draft/ngram/ngram_drafter.h"
#include "serve/runtime_impl.h"

namespace outrider {

Runtime::Impl::FileEntry* Runtime::Impl::find_file(const DrafterFile& file) {
  const std::vector<FileEntry>::iterator found = std::find_if(
      files_.begin(), files_.end(), [&file](const FileEntry& entry) { return entry.file == file; });
  return found == files_.end() ? nullptr : &*found;
}

// A tier is one cache, and merging two is `ngram merge`'s. What could not be used makes room.
Status Runtime::Impl::free_tier(const DrafterFile& file) {
  if (file.tier.empty()) return Status();
  for (FileEntry& entry : files_) {
    if (entry.file.drafter != file.drafter || entry.file.tier != file.tier) continue;
    if (entry.state == ModelState::kFailed && !entry.opened) {
      entry.state = ModelState::kAbsent;
      announce(entry, /*attached=*/false);
      std::erase_if(files_, [](const FileEntry& e) { return e.state == ModelState::kAbsent; });
      return Status();
    }
    return invalid_argument("--path is '" + file.path + "', but the " + file.tier + " tier of '" +
                            file.drafter + "' has '" + entry.file.path +
                            "' already; take that away first, or join them with 'outrider ngram "
                            "merge'");
  }
  return Status();
}

Status Runtime::Impl::attach(DrafterFile file) {
  OUTRIDER_RETURN_IF_ERROR(check_file_drafter(file));
  if (file.path.empty()) return invalid_argument("--path is '', but must be a file");
  if (file.drafter == NgramDrafter::kName && file.tier.empty()) file.tier = kFileTiers[0];
  const Lock lock(mutex_);
  if (stop_) return is_shut_down();
  FileEntry* entry = find_file(file);
  if (entry == nullptr) {
    OUTRIDER_RETURN_IF_ERROR(free_tier(file));
    if (files_.size() >= kMaxDrafterFiles) {
      return resource_exhausted("--path: " + std::to_string(files_.size()) +
                                " files are there already, the most that can be; take one away");
    }
    entry = &files_.emplace_back();
    entry->file = std::move(file);
  }
  order_file(*entry);
  return Status();
}

Status Runtime::Impl::detach(const DrafterFile& file) {
  OUTRIDER_RETURN_IF_ERROR(check_file_drafter(file));
  const Lock lock(mutex_);
  const auto meant = [&file](const FileEntry& entry) {
    return entry.file.drafter == file.drafter &&
           (file.path.empty() || entry.file.path == file.path) &&
           (file.tier.empty() || entry.file.tier == file.tier);
  };
  if (std::none_of(files_.begin(), files_.end(), meant)) {
    const std::string whose =
        "the drafter '" + file.drafter + "' has no " + (file.tier.empty() ? "" : file.tier + " ");
    return not_found(file.path.empty() ? whose + "files"
                                       : "--path is '" + file.path + "', but " + whose +
                                             (file.tier.empty() ? "such " : "") + "file");
  }
  for (FileEntry& entry : files_) {
    if (!meant(entry)) continue;
    // Also where none is at work for the current target: an older one may still use it.
    changes_.push_back({nullptr, entry.file,
                        "the file '" + entry.file.path + "' of the drafter '" + entry.file.drafter +
                            "' was taken away"});
    entry.opened.reset();
    entry.state = ModelState::kAbsent;
    entry.error = Status();
    announce(entry, /*attached=*/false);
  }
  std::erase_if(files_, meant);
  decode_work_.notify_all();
  loaded_.notify_all();
  return Status();
}

void Runtime::Impl::order_file(FileEntry& entry) {
  entry.order = next_file_order_++;
  entry.active = false;
  set_file_state(entry, ModelState::kLoading, Status());
  load_work_.notify_all();
}

void Runtime::Impl::set_file_state(FileEntry& entry, ModelState state, Status error) {
  entry.state = state;
  entry.error = std::move(error);
  announce(entry, /*attached=*/true);
}

void Runtime::Impl::announce(const FileEntry& entry, bool attached) {
  if (!events.wanted()) return;
  try {
    RuntimeEvent event;
    event.drafter = DrafterEvent{.file = status_of(entry), .attached = attached};
    events.post(std::move(event));
  } catch (const std::exception&) {  // out of memory: the status says the same
  }
}

// What was at work for the last target, or was refused by it, is opened anew for the next one.
void Runtime::Impl::reorder_files() {
  for (FileEntry& entry : files_) {
    entry.opened.reset();
    if (entry.order == 0 || entry.active) order_file(entry);
  }
}

// Those whose order is not done stay, as a draft's does.
void Runtime::Impl::drop_files() {
  for (FileEntry& entry : files_) {
    entry.opened.reset();
    if (entry.order != 0) continue;
    entry.state = ModelState::kAbsent;
    announce(entry, /*attached=*/false);
  }
  std::erase_if(files_, [](const FileEntry& entry) { return entry.order == 0; });
}

// The oldest order, once there is a target that it can be checked against.
Runtime::Impl::FileEntry* Runtime::Impl::next_file() {
  FileEntry* next = nullptr;
  for (FileEntry& entry : files_) {
    if (entry.order != 0 && (next == nullptr || entry.order < next->order)) next = &entry;
  }
  return current_ ? next : nullptr;
}

bool Runtime::Impl::file_orders_wait() const {
  return std::any_of(files_.begin(), files_.end(), [this](const FileEntry& entry) {
    return entry.order != 0 && (entry.active || current_ != nullptr);
  });
}

// Called and returns with the lock; opens without it.
void Runtime::Impl::open_file(Lock& lock) {
  FileEntry* entry = next_file();
  const std::uint64_t order = entry->order;
  const std::shared_ptr<Station> station = current_;
  entry->active = true;
  Status status;
  std::optional<OpenedDrafterFile> opened;
  try {
    const DrafterFile file = entry->file;
    lock.unlock();
    Result<OpenedDrafterFile> result = open_drafter_file(file, station->tokenizer());
    if (result.ok()) {
      opened = *std::move(result);
    } else {
      status = result.status();
    }
    lock.lock();
  } catch (const std::exception&) {
    if (!lock.owns_lock()) lock.lock();
    opened.reset();
    status = resource_exhausted("out of memory");
  }
  const std::vector<FileEntry>::iterator found =
      std::find_if(files_.begin(), files_.end(),
                   [order](const FileEntry& other) { return other.order == order; });
  if (found == files_.end()) return;  // taken away, or ordered anew
  found->active = false;
  if (station != current_) return;  // its target is gone: once more, for the next one
  found->order = 0;
  if (opened) {
    try {
      changes_.push_back({station, *opened, "the file '" + found->file.path + "' was replaced"});
      found->opened = std::move(opened);
    } catch (const std::bad_alloc&) {
      status = resource_exhausted("out of memory");
    }
  }
  set_file_state(*found, status.ok() ? ModelState::kReady : ModelState::kFailed, status);
  decode_work_.notify_all();
}

// On the decode thread.
void Runtime::Impl::install_file(Change change) {
  if (const DrafterFile* gone = std::get_if<DrafterFile>(&change.what)) {
    std::vector<std::shared_ptr<Station>> stations;
    try {
      const Lock lock(mutex_);
      stations = stations_;
    } catch (const std::bad_alloc&) {  // once more later: a file that was taken away is not used
      const Lock lock(mutex_);
      changes_.push_front(std::move(change));
      throw;
    }
    for (const std::shared_ptr<Station>& station : stations) {
      station->remove_file(*gone, change.reason);
    }
    return;
  }
  const OpenedDrafterFile& opened = std::get<OpenedDrafterFile>(change.what);
  try {
    change.station->add_file(opened);
  } catch (const std::exception&) {
    const Lock lock(mutex_);
    FileEntry* const entry = find_file(opened.file);
    if (entry == nullptr || change.station != current_) return;
    entry->opened.reset();
    set_file_state(*entry, ModelState::kFailed, resource_exhausted("out of memory"));
  }
}

// Also those that are on their way: requests that run get them as they come.
bool Runtime::Impl::has_ngram_files() const {
  return std::any_of(files_.begin(), files_.end(), [](const FileEntry& entry) {
    return entry.file.drafter == NgramDrafter::kName && entry.state != ModelState::kFailed;
  });
}

// Of what guesses unasked, what was ordered and is not there.
std::string Runtime::Impl::why_without_ordered(const Job& job) const {
  const bool coupled = job.request.rule == AcceptanceRule::kCoupled;
  const bool missed = !coupled || draft_role_.status.state != ModelState::kAbsent;
  std::string why = missed && job.station->draft() == nullptr ? why_no_draft(job) : "";
  if (!coupled || job.station != current_) return why;
  for (const FileEntry& entry : files_) {
    if (entry.state != ModelState::kFailed) continue;
    if (!why.empty()) why += "; ";
    why += "the file '" + entry.file.path + "' of '" + entry.file.drafter +
           "' could not be used: " + entry.error.message();
  }
  return why;
}

// Why a request that asked for speculation will go without a drafter that it named, or that its
// operator ordered; empty: it need not.
std::string Runtime::Impl::why_without(const Job& job) const {
  if (!job.speculative) return "";
  if (job.request.drafters.empty()) return why_without_ordered(job);
  const std::vector<Drafter*>& drafters = job.station->engine().drafters();
  std::string why;
  for (const std::vector<std::string>& chain : job.request.drafters.chains) {
    for (const std::string& name : chain) {
      const bool there = std::any_of(drafters.begin(), drafters.end(), [&name](const Drafter* d) {
        return d != nullptr && d->name() == name;
      });
      if (there) continue;
      if (!why.empty()) why += "; ";
      why += name == kDraftModelName ? why_no_draft(job) : "'" + name + "' is not attached";
    }
  }
  return why;
}

std::string Runtime::Impl::why_no_draft(const Job& job) const {
  if (job.station != current_) return "its target was replaced, and has no draft model";
  const ModelStatus& draft = draft_role_.status;
  if (draft.state == ModelState::kFailed) {
    return "the draft model could not be loaded: " + draft.error.message();
  }
  // One that is ready is on its way here.
  return draft.state == ModelState::kAbsent
             ? "no draft model is loaded"
             : "the draft model was still loading when the request began";
}

void Runtime::Impl::note_drafters(const Station& station) {
  if (&station != current_.get()) return;
  for (DrafterNote& note : drafters_) note.attached = false;
  for (const Drafter* drafter : station.engine().drafters()) {
    if (drafter == nullptr) continue;
    DrafterNote& note = note_of(drafter->name());
    note.attached = true;
    note.memory_bytes = station.memory_of(drafter->name());
    if (drafter->name() == "suffix") note.memory = station.memory();
  }
}

// All that was said: its last tokens too, though a stop string cuts off what they say, as a later
// text is likely to end like this one. A text that was cancelled is remembered as far as it went:
// editors cancel what they ask for again. Without the lock.
std::optional<Remembered> Runtime::Impl::remember(Station& station, const Job& job,
                                                  const Completion& completion) const {
  const std::optional<Remembered>& wish = job.result->remembered;
  if (!wish || !station.memory() || completion.finish == FinishReason::kError) return std::nullopt;
  return station.remember(wish->name_space, completion.tokens);
}

void Runtime::Impl::no_drafters() {
  for (DrafterNote& note : drafters_) note.attached = false;
}

DrafterFileStatus Runtime::Impl::status_of(const FileEntry& entry) const {
  DrafterFileStatus status{.file = entry.file,
                           .state = entry.state,
                           .error = entry.error,
                           .serving = entry.opened.has_value(),
                           .file_bytes = entry.opened ? entry.opened->file_bytes : 0,
                           .memory_bytes = entry.opened ? entry.opened->memory_bytes() : 0};
  const Status damage = entry.opened ? entry.opened->damage() : Status();
  if (damage.ok()) return status;
  status.serving = false;
  status.state = ModelState::kFailed;
  status.error = damage;
  return status;
}

std::vector<DrafterStatus> Runtime::Impl::drafter_statuses() const {
  std::vector<DrafterStatus> list;
  for (std::size_t i = 0; i < kDrafterNames.size(); ++i) {
    const DrafterNote& note = drafters_[i];
    DrafterStatus& s = list.emplace_back();
    s.name = kDrafterNames[i];
    s.attached = note.attached;
    s.memory_bytes = note.attached ? note.memory_bytes : 0;
    s.totals = note.totals;
    s.totals.name = s.name;
    s.state = note.attached ? ModelState::kReady : ModelState::kAbsent;
    if (note.attached && note.memory) {
      s.memory = note.memory;
      s.memory_bytes += note.memory->memory_bytes;
    }
    for (const FileEntry& entry : files_) {
      if (entry.file.drafter != s.name) continue;
      s.files.push_back(status_of(entry));
      s.memory_bytes += s.files.back().memory_bytes;
    }
    if (s.name != kDraftModelName) continue;
    const ModelStatus& draft = draft_role_.status;
    s.state = draft.state;
    s.path = draft.serving ? draft.serving_path : draft.path;
    s.error = draft.error;
  }
  return list;
}

}  // namespace outrider
