#include "testing/fake_loader.h"

#include <algorithm>
#include <stdexcept>

#include "testing/eventually.h"

namespace outrider::testing {

void FakeLoader::add_usual_files() {
  add("target", {.seed = 1});
  add("twin", {.seed = 1});
  add("other", {.seed = 2});
  add("draft", {.seed = 1, .noise = 0.5f});
  add("slow", {.seed = 1, .load_steps = kEndlessLoad});
  add("slow draft", {.seed = 1, .noise = 0.5f, .load_steps = kEndlessLoad});
  FakeFile broken;
  broken.failure = internal_error("'broken' is broken");
  add("broken", broken);
  add("throwing", {.throws = true});
  add("small", {.n_vocab = 5});
}

Result<FakeFile> FakeLoader::open(const ModelOptions& options, const LoadHooks& hooks) {
  FakeFile file;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::map<std::string, FakeFile>::const_iterator found = files_.find(options.path);
    if (found == files_.end()) return not_found("'" + options.path + "' does not exist");
    file = found->second;
    ++loads_of_[options.path];
    heads_[options.path] = options.head;
  }
  ++loads_;
  ++loading_;
  const Status status = go_through(file, hooks);
  --loading_;
  if (!status.ok()) return status;
  if (file.throws) throw std::runtime_error("on purpose");
  if (file.failure) return *file.failure;
  if (hooks.progress) hooks.progress(1.0);
  return file;
}

// Nothing tells of a cancel: it is a flag that is looked at.
Status FakeLoader::go_through(const FakeFile& file, const LoadHooks& hooks) {
  const auto is_cancelled = [&hooks] { return hooks.cancel != nullptr && hooks.cancel->load(); };
  const bool endless = file.load_steps == kEndlessLoad;
  for (std::int32_t i = 0; i < file.load_steps || held_.load(); ++i) {
    if (hooks.progress) hooks.progress(double(i) / std::max(file.load_steps, 1));
    const auto goes_on = [&] { return is_cancelled() || !(endless || held_.load()); };
    if (!eventually(goes_on)) return internal_error("nobody has ended the load of this fake file");
    if (is_cancelled()) return cancelled("loading was cancelled");
  }
  return Status();
}

}  // namespace outrider::testing
