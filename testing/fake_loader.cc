#include "testing/fake_loader.h"

#include <stdexcept>

namespace outrider::testing {

void FakeLoader::add_usual_files() {
  add("target", {.seed = 1});
  add("other", {.seed = 2});
  add("draft", {.seed = 1, .noise = 0.5f});
  add("slow", {.seed = 1, .load_steps = kEndlessLoad});
  add("slow draft", {.seed = 1, .noise = 0.5f, .load_steps = kEndlessLoad});
  add("lazy", {.seed = 1, .step_us = 2000});
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
  Status status;
  for (int i = 0; (i < file.load_steps || held_.load()) && status.ok();) {
    if (hooks.progress) hooks.progress(file.load_steps == 0 ? 0.0 : double(i) / file.load_steps);
    if (!held_.load()) ++i;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // nothing depends on how long
    if (hooks.cancel != nullptr && hooks.cancel->load())
      status = cancelled("loading was cancelled");
  }
  --loading_;
  if (!status.ok()) return status;
  if (file.throws) throw std::runtime_error("on purpose");
  if (file.failure) return *file.failure;
  if (hooks.progress) hooks.progress(1.0);
  return file;
}

}  // namespace outrider::testing
