#include "serve/file_loads.h"

#include <algorithm>
#include <utility>

#include "base/list_of.h"
#include "draft/drafter_table.h"

namespace outrider {

FileLoads::File* FileLoads::find(const DrafterFile& file) {
  const std::vector<File>::iterator found = std::ranges::find(files_, file, &File::file);
  return found == files_.end() ? nullptr : &*found;
}

FileLoads::File* FileLoads::find(const LoadTask::Opening& opening) {
  const std::vector<File>::iterator found = std::ranges::find_if(
      files_, [&opening](const File& file) { return file.task.is_current(opening); });
  return found == files_.end() ? nullptr : &*found;
}

// A tier holds one file. What could not be used makes room.
Status FileLoads::free_tier(const DrafterFile& file) {
  if (file.tier.empty()) return Status();
  for (File& other : files_) {
    if (other.file.drafter != file.drafter || other.file.tier != file.tier) continue;
    if (other.task.state() == LoadTask::State::kFailed && !other.opened) {
      other.task.take_away();
      announce(other, /*attached=*/false);
      files_.erase(files_.begin() + (&other - files_.data()));
      return Status();
    }
    const std::string join(find_lookup_kind(file.drafter)->files->join_command);
    return refused("path", "is '" + file.path + "', but the " + file.tier + " tier of '" +
                               file.drafter + "' has '" + other.file.path +
                               "' already; take that away first" +
                               (join.empty() ? "" : ", or join them with '" + join + "'"));
  }
  return Status();
}

Status FileLoads::attach(DrafterFile file) {
  File* entry = find(file);
  if (entry == nullptr) {
    OUTRIDER_RETURN_IF_ERROR(free_tier(file));
    if (files_.size() >= kMaxDrafterFiles) {
      return resource_exhausted(std::to_string(files_.size()) +
                                " files are there already, the most that can be; take one away")
          .in_field("path");
    }
    entry = &files_.emplace_back();
    entry->file = std::move(file);
  }
  entry->task.ask(next_number_++);
  announce(*entry, /*attached=*/true);
  shared_.load_work.notify_all();
  return Status();
}

Status FileLoads::detach(const DrafterFile& file) {
  const auto meant = [&file](const File& other) {
    return other.file.drafter == file.drafter &&
           (file.path.empty() || other.file.path == file.path) &&
           (file.tier.empty() || other.file.tier == file.tier);
  };
  if (std::none_of(files_.begin(), files_.end(), meant)) {
    const std::string whose =
        "the drafter '" + file.drafter + "' has no " + (file.tier.empty() ? "" : file.tier + " ");
    if (file.path.empty()) return not_found(whose + "files");
    return refused(
        StatusCode::kNotFound, "path",
        "is '" + file.path + "', but " + whose + (file.tier.empty() ? "such " : "") + "file");
  }
  for (std::size_t i = 0; i < files_.size();) {
    File& gone = files_[i];
    if (!meant(gone)) {
      ++i;
      continue;
    }
    // Also where none is at work for the current target: an older one may still use it.
    stations_.add_for_all(gone.file, "the file '" + gone.file.path + "' of the drafter '" +
                                         gone.file.drafter + "' was taken away");
    let_go(gone);
    gone.task.take_away();
    announce(gone, /*attached=*/false);
    files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  shared_.decode_work.notify_all();
  shared_.loaded.notify_all();
  return Status();
}

std::optional<std::size_t> FileLoads::next() const {
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (!files_[i].task.waiting()) continue;
    if (!next || files_[i].task.number() < files_[*next].task.number()) next = i;
  }
  return stations_.current() ? next : std::nullopt;
}

LoadTask::Opening FileLoads::begin_next() { return files_[*next()].task.begin(); }

// Needs no memory.
void FileLoads::let_go(File& file) {
  if (!file.opened) return;
  unused_.push_back(std::move(file.opened->contents));
  file.opened.reset();
  shared_.load_work.notify_all();
}

std::shared_ptr<const LookupFile> FileLoads::take_unused() {
  if (unused_.empty()) return nullptr;
  std::shared_ptr<const LookupFile> last = std::move(unused_.back());
  unused_.pop_back();  // its room stays
  return last;
}

void FileLoads::done(const LoadTask::Opening& opening, const StationPtr& station,
                     const Result<OpenedDrafterFile>& opened) {
  File* const file = find(opening);
  if (file == nullptr) return;  // taken away, or asked for anew
  if (station != stations_.current()) return file->task.wait_again();
  if (opened.ok()) {
    unused_.reserve(unused_.size() + files_.size());
    OpenedDrafterFile at_work = *opened;
    stations_.add({station, *opened, "the file '" + file->file.path + "' was replaced"});
    let_go(*file);
    file->opened = std::move(at_work);
    file->task.succeed();
  } else {
    file->task.fail(opened.status());
  }
  announce(*file, /*attached=*/true);
  shared_.decode_work.notify_all();
}

void FileLoads::end_everything() {
  for (File& file : files_) {
    if (!file.task.pending()) continue;
    file.task.fail(RuntimeShared::is_shut_down());
    announce(file, /*attached=*/true);
  }
  shared_.loaded.notify_all();
}

bool FileLoads::busy() const {
  return std::any_of(files_.begin(), files_.end(), [this](const File& file) {
    return file.task.opening() || (file.task.waiting() && stations_.current() != nullptr);
  });
}

void FileLoads::not_installed(const OpenedDrafterFile& opened, Status why) {
  File* const file = find(opened.file);
  if (file == nullptr || !file->opened || file->opened->contents != opened.contents) return;
  let_go(*file);
  if (file->task.state() == LoadTask::State::kReady) {
    file->task.lose(std::move(why));
  } else {  // the state is that of a newer load
    file->task.stop_serving();
  }
  announce(*file, /*attached=*/true);
}

void FileLoads::ask_again() {
  for (File& file : files_) {
    let_go(file);
    const bool waits = file.task.waiting();
    if (!waits) file.task.ask(next_number_++);
    file.task.stop_serving();
    if (!waits) announce(file, /*attached=*/true);
  }
  shared_.load_work.notify_all();
}

void FileLoads::drop() {
  for (File& file : files_) {
    let_go(file);
    file.task.lose();
    if (!file.task.pending()) announce(file, /*attached=*/false);
  }
  std::erase_if(files_, [](const File& file) { return !file.task.pending(); });
}

void FileLoads::announce(const File& file, bool attached) {
  shared_.events.tell([&] {
    return RuntimeEvent{.drafter = DrafterEvent{.file = status_of(file), .attached = attached}};
  });
}

DrafterFileStatus FileLoads::status_of(const File& file) {
  DrafterFileStatus status{.file = file.file,
                           .state = file.task.model_state(),
                           .error = file.task.error(),
                           .serving = file.task.serving()};
  if (!file.opened) return status;
  status.file_bytes = file.opened->contents->file_bytes();
  status.memory_bytes = file.opened->contents->memory_bytes();
  const Status damage = file.opened->contents->damage();
  if (damage.ok()) return status;
  status.serving = false;
  status.state = ModelState::kFailed;
  status.error = damage;
  return status;
}

std::vector<std::string_view> FileLoads::drafters_with_files() const {
  std::vector<std::string_view> names;
  for (const File& file : files_) {
    if (file.task.state() != LoadTask::State::kFailed) names.emplace_back(file.file.drafter);
  }
  return names;
}

std::vector<DrafterFileStatus> FileLoads::statuses(std::string_view drafter) const {
  std::vector<DrafterFileStatus> list;
  for (const File& file : files_) {
    if (file.file.drafter == drafter) list.push_back(status_of(file));
  }
  return list;
}

std::string FileLoads::failures(std::string_view drafter) const {
  std::vector<std::string> all;
  for (const File& file : files_) {
    if (file.task.state() != LoadTask::State::kFailed) continue;
    if (!drafter.empty() && file.file.drafter != drafter) continue;
    all.push_back("the file '" + file.file.path + "' of '" + file.file.drafter +
                  "' could not be used: " + file.task.error().message());
  }
  return joined(all, "; ");
}

std::string FileLoads::check_integrity() const {
  for (const File& file : files_) {
    const std::string broken = file.task.check_integrity();
    if (!broken.empty()) return "'" + file.file.path + "': " + broken;
    if (file.task.serving() != file.opened.has_value()) {
      return "'" + file.file.path + "' is at work without its contents, or the other way round";
    }
  }
  return "";
}

}  // namespace outrider
