#include "rpcserver/session.h"

#include <limits>
#include <new>
#include <utility>

#include "rpcserver/seed_object.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

constexpr std::size_t kManyCompletions = 512;  // more than can wait and be kept
constexpr std::int64_t kWaitMs = 60'000;       // of one wait for a synchronous completion's end

// Which completion a call is about; 0: the newest, of which there is none.
Result<CompletionId> choose(const char* which, CompletionId newest) {
  OUTRIDER_ASSIGN_OR_RETURN(const Json parsed, parse_object(which, /*may_be_empty=*/true));
  JsonFields fields(parsed, "", &kSeedDialect);
  CompletionId id = newest;
  fields.integer("id", id, 1, std::numeric_limits<std::int64_t>::max());
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return id;
}

// The answer to a poll for a completion that is not there; 0: the newest of a session without any.
// `finished` wherever nothing will come, so that a loop until then ends; the newest one of an
// earlier session has ended, too.
Json poll_of_none(CompletionId id, const CompletionsSoFar& so_far) {
  Json answer = nothing_new();
  answer["finished"] = id != 0 || so_far.asynchronous.load();
  if (id == 0) return answer;
  answer["success"] = false;
  return with_error(std::move(answer), not_found("there is no completion with id " +
                                                 std::to_string(id) + " (any more)")
                                           .about("id"));
}

Json poll_refused(const Status& error) {
  Json answer = nothing_new();
  answer["success"] = false;
  return with_error(std::move(answer), error);
}

}  // namespace

Json poll_without_session(const char* which, const CompletionsSoFar& so_far) {
  const Result<CompletionId> id = choose(which, /*newest=*/0);
  return id.ok() ? poll_of_none(*id, so_far) : poll_refused(id.status());
}

Status Session::shut_down() { return cancelled("the library was shut down (deinit)"); }

Result<std::unique_ptr<Session>> Session::create(ModelLoader& loader, CompletionsSoFar& so_far) {
  RuntimeOptions options;
  options.slots = 1;  // one completion at a time, as the seed had it; the context is its own
  options.retention_ms = kYearMs;  // forget_oldest() bounds the memory
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime, Runtime::create(options, loader));
  return std::unique_ptr<Session>(new Session(std::move(runtime), so_far));
}

void Session::close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  runtime_->shut_down();
}

Json Session::tokenize(const char* request) const {
  Result<Json> parsed = parse_object(request, /*may_be_empty=*/false);
  if (!parsed.ok()) return failure(parsed.status());
  JsonFields fields(*parsed, "", &kSeedDialect);
  std::string text;
  fields.text("text", text);
  if (fields.any("text") == nullptr) fields.fail(refused("text", "is needed, a string"));
  if (const Status error = fields.finish(); !error.ok()) return failure(error);
  const std::shared_ptr<const Target> target = runtime_->target();
  if (target == nullptr) return failure(not_found("no target is loaded"));
  const Vocabulary& vocabulary = target->vocabulary();
  const Result<std::vector<Token>> tokens =
      vocabulary.tokenize(text, /*add_special=*/true, /*parse_special=*/true);
  if (!tokens.ok()) return failure(refusal_of(tokens.status()));
  Json pieces = Json::array();
  for (const Token token : *tokens) pieces.push_back(std::string(vocabulary.piece(token)));
  return {{"success", true}, {"tokens", std::move(pieces)}, {"length", tokens->size()}};
}

Result<Session::Started> Session::begin(const char* request) {
  OUTRIDER_ASSIGN_OR_RETURN(const Json parsed, parse_object(request, /*may_be_empty=*/false));
  for (;;) {
    std::uint64_t config_number = 0;
    OUTRIDER_ASSIGN_OR_RETURN(Started started, begin_with_config(parsed, config_number));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      note_loaded(runtime_->status());
      if (config_number == n_configs_) return started;
    }
    // Another target took the first one's place meanwhile: its name and defaults are others.
    (void)runtime_->cancel(started.runtime_id);
    Result<PolledCompletion> polled = runtime_->poll(started.runtime_id, kWaitMs);
    while (polled.ok() && !polled->finished) polled = runtime_->poll(started.runtime_id, kWaitMs);
  }
}

Result<Session::Started> Session::begin_with_config(const Json& parsed,
                                                    std::uint64_t& config_number) {
  Started started;
  RequestDefaults defaults;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return shut_down();
    note_loaded(runtime_->status());
    defaults = state_.config.defaults;
    started.model = state_.config.alias;
    config_number = n_configs_;
  }
  OUTRIDER_ASSIGN_OR_RETURN(started.options, parse_request(parsed, defaults));
  const std::shared_ptr<const Target> target = runtime_->target();
  const std::int64_t n_ctx = target == nullptr ? 0 : target->capabilities().n_ctx;
  Result<StartedCompletion> result = runtime_->start(completion_request(started.options, n_ctx));
  if (!result.ok()) return refusal_of(result.status());
  started.id = ++so_far_.last_id;
  started.runtime_id = result->id;
  started.prompt = std::move(result->prompt);
  return started;
}

Json Session::complete(const char* request) {
  Result<Started> begun = begin(request);
  if (!begun.ok()) return sync_failure(begun.status());
  Started& started = *begun;
  std::vector<SaidToken> tokens;
  std::shared_ptr<const CompletionResult> result;
  while (result == nullptr) {
    Result<PolledCompletion> polled = runtime_->poll(started.runtime_id, kWaitMs);
    if (!polled.ok()) return sync_failure(refusal_of(polled.status()));
    for (SaidToken& token : polled->tokens) tokens.push_back(std::move(token));
    result = std::move(polled->result);
  }
  FinalParts parts{.options = &started.options, .model = started.model, .streamed = false};
  if (started.options.n_predict() != 0) {
    const Completion& c = result->completion;
    parts.content =
        c.stop.empty() ? drop_partial_stop(c.text, started.options.request.stop) : c.text;
    // Without the tokens at the end that a stop string cut off whole.
    while (!c.stop.empty() && !tokens.empty() && tokens.back().text.empty()) tokens.pop_back();
    parts.tokens = std::move(tokens);
  }
  Json response = final_response(parts, *result);
  response["prompt_stats"] = prompt_stats_json(started.prompt);
  response["warnings"] = started.options.warnings;
  return response;
}

Json Session::start(const char* request) {
  Result<Started> begun = begin(request);
  if (!begun.ok()) return failure(begun.status());
  Started& started = *begun;
  const Json response = {{"success", true},
                         {"id", started.id},
                         {"prompt_stats", prompt_stats_json(started.prompt)},
                         {"warnings", started.options.warnings}};
  const CompletionId id = started.id;
  const CompletionId runtime_id = started.runtime_id;
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    completions_.emplace(id, Completed(std::move(started)));
  } catch (...) {  // out of memory: nobody could poll for it
    (void)runtime_->cancel(runtime_id);
    throw;
  }
  newest_ = std::max(newest_, id);
  so_far_.asynchronous.store(true);
  forget_oldest();
  return response;
}

// Takes from the runtime what is new. The caller holds mutex_.
void Session::collect(Completed& completion) {
  if (completion.finished) return;
  const RequestOptions& options = completion.started.options;
  const bool with_probabilities = options.n_probs() > 0;
  Result<PolledCompletion> polled = runtime_->poll(completion.started.runtime_id, /*wait_ms=*/0);
  if (!polled.ok()) {  // cannot be: it stays there until its result is taken
    completion.finished = true;
    completion.ended = ++n_ended_;
    completion.updates.push_back(
        {{"content", ""}, {"stop", true}, {"status", 500}, {"error", polled.status().message()}});
    return;
  }
  completion.prompt_progress = polled->prompt_progress;
  if (options.n_predict() == 0)
    polled->tokens.clear();  // one was asked for, to have the prompt read
  std::vector<TextUpdate> updates = completion.stream.add(std::move(polled->tokens));
  if (polled->result != nullptr) {
    for (TextUpdate& update : completion.stream.finish()) updates.push_back(std::move(update));
  }
  for (TextUpdate& update : updates) {
    Json shown = {{"content", update.content}, {"stop", false}};
    if (with_probabilities) {
      shown["completion_probabilities"] = probabilities_json(update.tokens);
      for (SaidToken& token : update.tokens) completion.sent.push_back(std::move(token));
    }
    completion.updates.push_back(std::move(shown));
  }
  if (polled->result == nullptr) return;
  completion.finished = true;
  completion.ended = ++n_ended_;
  completion.updates.push_back(final_response({.options = &options,
                                               .model = completion.started.model,
                                               .streamed = true,
                                               .content = "",
                                               .tokens = std::move(completion.sent)},
                                              *polled->result));
}

// Keeps kFinishedKept of those that are finished, those that ended last. They finish in the order
// of their ids, but for what was cancelled while it waited, whose end cancel() has seen. So it is
// enough to look at the oldest; the others are found when there are many. The caller holds mutex_.
void Session::forget_oldest() {
  const bool look_at_all = completions_.size() > kManyCompletions;
  std::size_t n_finished = 0;
  for (auto& [id, completion] : completions_) {
    collect(completion);
    if (completion.finished) ++n_finished;
    if (!completion.finished && !look_at_all) break;
  }
  for (; n_finished > kFinishedKept; --n_finished) {
    auto first = completions_.end();
    for (auto it = completions_.begin(); it != completions_.end(); ++it) {
      const bool is_earlier = first == completions_.end() || it->second.ended < first->second.ended;
      if (it->second.finished && is_earlier) first = it;
    }
    completions_.erase(first);
  }
}

Json Session::poll(const char* which) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Result<CompletionId> id = choose(which, newest_);
  if (!id.ok()) return poll_refused(id.status());
  const auto found = completions_.find(*id);
  if (found == completions_.end()) return poll_of_none(*id, so_far_);
  Completed& completion = found->second;
  collect(completion);
  Json answer = nothing_new();
  answer["completion_updates"] = std::exchange(completion.updates, Json::array());
  answer["finished"] = completion.finished;
  answer["prompt_processing_progress"] = completion.prompt_progress;
  return answer;
}

Json Session::cancel(const char* which) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Result<CompletionId> id = choose(which, newest_);
  if (!id.ok()) return failure(id.status());
  const auto found = completions_.find(*id);
  if (found != completions_.end()) {
    (void)runtime_->cancel(found->second.started.runtime_id);  // not found: it has ended
    try {
      collect(found->second);  // one that waited has ended now, before those that run
    } catch (const std::bad_alloc&) {
      // It is cancelled all the same; what is missing then, the next poll says.
    }
  }
  return {{"success", true}};
}

}  // namespace outrider::rpcserver
