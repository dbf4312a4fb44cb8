#include "tools/model_news.h"

#include "tools/options/drafter_files.h"
#include "tools/options/field_words.h"

namespace outrider::tools {
namespace {

// Somebody unloaded it, or the server ends.
bool is_error(const Status& status) {
  return !status.ok() && status.code() != StatusCode::kCancelled;
}

std::vector<Status> drafting_errors(const CatalogStatus& model) {
  std::vector<Status> errors;
  if (is_error(model.draft_error)) {
    errors.push_back(in_options(model.draft_error, ModelRole::kDraft));
  }
  for (const DrafterFileStatus& file : model.failed_files) {
    if (is_error(file.error)) errors.push_back(file.error.with_context(file_option(file.file)));
  }
  return errors;
}

}  // namespace

Status drafting_error(const CatalogStatus& model) {
  const std::vector<Status> errors = drafting_errors(model);
  return errors.empty() ? Status() : errors.front();
}

std::vector<std::string> ModelNews::of(const std::vector<CatalogStatus>& models) {
  std::vector<std::string> news;
  for (const CatalogStatus& model : models) {
    Told& told = told_[model.name];
    const std::string who = "model '" + model.name + "'";
    const auto say_once = [&](const std::string& text) {
      if (told.sentences.insert(text).second) news.push_back(who + ": " + text);
    };
    if (model.n_lost > told.n_lost) {
      told.n_lost = model.n_lost;
      const bool is_default = &model == &models.front();
      news.push_back(who + " is lost: " + option_message(model.lost) +
                     (is_default ? "; it is opened again" : "; the next request opens it again"));
    }
    if (model.loads_ended > told.loads_ended) {
      told.loads_ended = model.loads_ended;
      const std::string failure = is_error(model.last_load) ? option_message(model.last_load) : "";
      if (!failure.empty() && failure != told.failure) {
        news.push_back(who + " cannot be opened: " + failure);
      }
      if (!failure.empty() || model.last_load.ok()) told.failure = failure;
    }
    for (const std::string& note : model.notes) say_once(in_options(note));
    for (const Status& error : drafting_errors(model)) {
      say_once(option_message(error) + "; it answers without");
    }
  }
  return news;
}

}  // namespace outrider::tools
