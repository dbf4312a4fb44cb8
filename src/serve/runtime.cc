#include "serve/runtime.h"

#include <algorithm>
#include <random>
#include <system_error>

#include "draft/suffix/suffix_memory.h"
#include "serve/prompt.h"
#include "serve/runtime_impl.h"

namespace outrider {

std::string_view model_role_name(ModelRole role) {
  return role == ModelRole::kTarget ? "target" : "draft";
}

std::string_view model_state_name(ModelState state) {
  switch (state) {
    case ModelState::kAbsent:
      return "absent";
    case ModelState::kLoading:
      return "loading";
    case ModelState::kReady:
      return "ready";
    case ModelState::kFailed:
      return "failed";
  }
  return "absent";
}

std::string_view ended_by_name(EndedBy by) {
  switch (by) {
    case EndedBy::kItself:
      return "itself";
    case EndedBy::kClient:
      return "client";
    case EndedBy::kTimeout:
      return "timeout";
    case EndedBy::kUnload:
      return "unload";
    case EndedBy::kShutdown:
      return "shutdown";
  }
  return "itself";
}

namespace {

Status out_of_range(const char* name, std::int64_t value, const std::string& range) {
  return invalid_argument(std::string("--") + name + " is " + std::to_string(value) +
                          ", but must be " + range);
}

Status validate(const RuntimeOptions& o) {
  if (o.slots < 1 || o.slots > 64) return out_of_range("slots", o.slots, "from 1 to 64");
  if (o.max_queue < 0) return out_of_range("max-queue", o.max_queue, "at least 0");
  if (o.prompt_chunk < 1) return out_of_range("prompt-chunk", o.prompt_chunk, "at least 1");
  if (o.retention_ms < 0) return out_of_range("retention-ms", o.retention_ms, "at least 0");
  if (o.remember_tokens == 0) return Status();
  const std::int64_t least = SuffixMemory::kLeastTokens;
  const std::int64_t most = SuffixMemory::kMostTokens;
  if (o.remember_tokens < least || o.remember_tokens > most) {
    return out_of_range(
        "remember-tokens", o.remember_tokens,
        "0 (nothing), or from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return Status();
}

constexpr std::size_t kMaxNamespaceBytes = 64;

Status check_namespace(const std::string& name) {
  const bool printable = std::none_of(name.begin(), name.end(), [](char c) {
    const unsigned char byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
  if (!name.empty() && name.size() <= kMaxNamespaceBytes && printable) return Status();
  return invalid_argument("--namespace has " + std::to_string(name.size()) + " bytes" +
                          (printable ? "" : " with control characters among them") +
                          ", but must have 1 to " + std::to_string(kMaxNamespaceBytes) +
                          ", none of them a control character");
}

// Until the text is finished; what is there then takes its place.
Remembered not_remembered_yet(std::string name, bool remembering) {
  return {.name_space = std::move(name),
          .tokens = 0,
          .reason = remembering ? "the text was not finished"
                                : "no texts are remembered here: the operator has not switched it "
                                  "on (--remember-tokens)"};
}

// Below 2^32: any JSON reader can hold it.
std::uint64_t random_seed() {
  std::random_device random;
  return random() & 0xFFFFFFFFU;
}

Result<Request> make_request(CompletionRequest& r, std::vector<Token> prompt,
                             const Target& target) {
  Result<std::unique_ptr<Sampler>> sampler = target.make_sampler(r.sampling);
  if (!sampler.ok()) return sampler.status();
  Request request;
  request.prompt = std::move(prompt);
  request.sampler = std::move(*sampler);
  request.seed = r.seed ? *r.seed : random_seed();
  request.max_tokens = r.max_tokens;
  request.stop = std::move(r.stop);
  request.rule = r.rule;
  request.draft = r.draft;
  request.speculative = r.speculative;
  request.width = r.width;
  request.logprobs = r.logprobs;
  request.logprobs_after_sampler = r.logprobs_after_sampler;
  request.name_space = r.name_space.value_or("");
  request.drafters = std::move(r.drafters);
  if (r.shift_keep) {
    request.shift_keep =
        *r.shift_keep < 0 ? static_cast<std::int32_t>(request.prompt.size()) : *r.shift_keep;
  }
  if (!r.speculative) request.speculation_off_reason = "the request asked for plain decoding";
  const Status status = check_request(target.capabilities(), request);
  if (!status.ok()) return status;
  return request;
}

// Fills in the texts of what is likely to be reused, and of the rest.
Status note_texts(PromptStats& stats, std::span<const Token> tokens, std::size_t n_cached,
                  const Vocabulary& vocabulary) {
  const std::vector<Token> cached(tokens.begin(),
                                  tokens.begin() + static_cast<std::ptrdiff_t>(n_cached));
  const std::vector<Token> rest(tokens.begin() + static_cast<std::ptrdiff_t>(n_cached),
                                tokens.end());
  Result<std::string> cached_text = vocabulary.detokenize(cached);
  if (!cached_text.ok()) return cached_text.status();
  Result<std::string> rest_text = vocabulary.detokenize(rest);
  if (!rest_text.ok()) return rest_text.status();
  stats.cached = std::move(*cached_text);
  stats.to_evaluate = std::move(*rest_text);
  return Status();
}

}  // namespace

Status Runtime::Impl::no_target() const {
  const ModelStatus& s = target_role_.status;
  switch (s.state) {
    case ModelState::kLoading:
      return not_found("the model '" + s.path + "' is still loading; wait until it is ready");
    case ModelState::kFailed:
      return not_found("the model could not be loaded: " + s.error.message());
    default:
      return not_found("no model is loaded; load a target first");
  }
}

std::shared_ptr<const Target> Runtime::Impl::target() {
  const Lock lock(mutex_);
  return current_ ? current_->target() : nullptr;
}

Result<StartedCompletion> Runtime::Impl::start(CompletionRequest r) {
  if (r.timeout_ms < 0) {
    return invalid_argument("--timeout-ms is " + std::to_string(r.timeout_ms) +
                            ", but must be at least 1, or 0 for none");
  }
  if (r.name_space) OUTRIDER_RETURN_IF_ERROR(check_namespace(*r.name_space));
  const JobPtr job = std::make_shared<Job>();
  job->result = std::make_shared<CompletionResult>();
  IdleTexts idle;
  {
    const Lock lock(mutex_);
    if (!current_) return no_target();
    job->station = current_;
    idle = idle_;
  }
  const Target& target = *job->station->target();
  if (r.timeout_ms > 0) {
    job->deadline = Job::Clock::now() + std::chrono::milliseconds(r.timeout_ms);
  }
  Result<Prompt> prompt = make_prompt(r, target);
  if (!prompt.ok()) return prompt.status();
  PromptStats& stats = job->result->prompt;
  stats.n_ctx = target.capabilities().n_ctx;
  stats.n_tokens = static_cast<std::int64_t>(prompt->tokens.size());
  stats.n_tokens_asked = prompt->n_asked;
  const bool whole_only = target.capabilities().rollback != Rollback::kAny;
  const std::optional<IdleTexts::Choice> choice = idle.choose(prompt->tokens, whole_only);
  const std::size_t n_cached = choice ? choice->kept : 0;
  stats.n_cached = static_cast<std::int64_t>(n_cached);
  if (r.prompt_texts) {
    OUTRIDER_RETURN_IF_ERROR(note_texts(stats, prompt->tokens, n_cached, target.vocabulary()));
  }
  job->speculative = r.speculative && r.width != 1;
  Result<Request> request = make_request(r, std::move(prompt->tokens), target);
  if (!request.ok()) return request.status();
  job->request = std::move(*request);
  job->result->completion.seed = job->request.seed;
  job->result->completion.prompt_tokens = stats.n_tokens;
  job->result->exactness = target.exactness();
  job->result->kernels = target.info().kernels;
  job->result->model = target.info().path;
  if (r.name_space) {
    job->result->remembered = not_remembered_yet(*r.name_space, options.remember_tokens > 0);
  }

  const Lock lock(mutex_);
  if (stop_) return is_shut_down();
  const std::size_t at_once =
      static_cast<std::size_t>(options.slots) + static_cast<std::size_t>(options.max_queue);
  if (queue_.size() + running_.size() >= at_once) {
    return resource_exhausted("the queue is full: " + std::to_string(running_.size()) +
                              " requests are running and " + std::to_string(queue_.size()) +
                              " are waiting; try again later");
  }
  if (!current_) return no_target();
  // Its target may have been replaced meanwhile, and be at an end.
  if (std::find(stations_.begin(), stations_.end(), job->station) == stations_.end()) {
    stations_.insert(stations_.begin(), job->station);
  }
  job->id = next_id_;
  queue_.push_back(job);
  try {
    jobs_.emplace(job->id, job);
  } catch (...) {  // out of memory: as if nothing had happened
    queue_.pop_back();
    throw;
  }
  ++next_id_;
  ++totals_.started;
  if (job->deadline) deadline_set_.notify_all();
  decode_work_.notify_all();
  return StartedCompletion{.id = job->id, .prompt = stats};
}

Result<PolledCompletion> Runtime::Impl::poll(CompletionId id, std::int64_t wait_ms) {
  Lock lock(mutex_);
  const std::map<CompletionId, JobPtr>::iterator found = jobs_.find(id);
  if (found == jobs_.end()) {
    return not_found("there is no completion " + std::to_string(id) +
                     ": it was never started, or its result has been handed out");
  }
  const JobPtr job = found->second;
  const auto ready = [&job] { return job->finished || !job->fresh.empty(); };
  if (wait_ms > 0 && !ready()) {
    ++polls_;
    job->changed.wait_for(lock, wait_time(wait_ms), ready);
    if (--polls_ == 0) no_poll_.notify_all();
  }
  PolledCompletion polled;
  polled.tokens.swap(job->fresh);
  polled.prompt_progress = job->prompt_progress;
  if (!job->finished) return polled;
  polled.finished = true;
  polled.result = job->result;
  jobs_.erase(id);
  return polled;
}

Status Runtime::Impl::cancel(CompletionId id) {
  const Lock lock(mutex_);
  const std::map<CompletionId, JobPtr>::iterator found = jobs_.find(id);
  if (found == jobs_.end()) {
    return not_found("there is no completion " + std::to_string(id));
  }
  end(*found->second, EndedBy::kClient);
  return Status();
}

std::string Runtime::Impl::check_integrity() {
  const Lock lock(mutex_);
  for (const JobPtr& job : queue_) {
    if (job->running || job->finished) return "a waiting job is running or finished";
  }
  for (const JobPtr& job : running_) {
    if (job->finished || !job->station) return "a running job is finished";
  }
  if (running_.size() > static_cast<std::size_t>(options.slots) * stations_.size()) {
    return "more requests are running than there are slots";
  }
  const std::int64_t open = totals_.started - totals_.finished;
  if (open != static_cast<std::int64_t>(queue_.size() + running_.size())) {
    return "a request is lost: " + std::to_string(open) + " are open, " +
           std::to_string(queue_.size()) + " wait, " + std::to_string(running_.size()) + " run";
  }
  if (current_ && (stations_.empty() || stations_.back() != current_)) {
    return "the current target is not at work";
  }
  return "";
}

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::~Runtime() = default;

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options,
                                                 ModelLoader& loader) {
  OUTRIDER_RETURN_IF_ERROR(validate(options));
  try {
    return std::unique_ptr<Runtime>(new Runtime(std::make_unique<Impl>(options, loader)));
  } catch (const std::system_error& e) {
    return resource_exhausted(std::string("cannot start a thread: ") + e.what());
  }
}

const RuntimeOptions& Runtime::options() const { return impl_->options; }

Status Runtime::load(ModelRole role, ModelOptions options) {
  return impl_->load(role, std::move(options));
}

void Runtime::shut_down() { impl_->shut_down(); }

Status Runtime::cancel_load(ModelRole role) { return impl_->cancel_load(role); }
Status Runtime::unload(ModelRole role, bool at_once) { return impl_->unload(role, at_once); }
Status Runtime::attach(DrafterFile file) { return impl_->attach(std::move(file)); }
Status Runtime::detach(const DrafterFile& file) { return impl_->detach(file); }
RuntimeStatus Runtime::status() const { return impl_->status(); }
std::shared_ptr<const Target> Runtime::target() const { return impl_->target(); }
bool Runtime::wait_loaded(std::int64_t wait_ms) const { return impl_->wait_loaded(wait_ms); }

Result<StartedCompletion> Runtime::start(CompletionRequest request) {
  return impl_->start(std::move(request));
}

Result<PolledCompletion> Runtime::poll(CompletionId id, std::int64_t wait_ms) {
  return impl_->poll(id, wait_ms);
}

Status Runtime::cancel(CompletionId id) { return impl_->cancel(id); }

Result<std::shared_ptr<const CompletionResult>> Runtime::run(CompletionRequest request) {
  const Result<StartedCompletion> started = start(std::move(request));
  if (!started.ok()) return started.status();
  while (true) {
    Result<PolledCompletion> polled = poll(started->id, 3'600'000);
    if (!polled.ok()) return polled.status();
    if (polled->finished) return polled->result;
  }
}

void Runtime::subscribe(std::function<void(const RuntimeEvent&)> callback) {
  impl_->events.subscribe(std::move(callback));
}

std::string Runtime::check_integrity() const { return impl_->check_integrity(); }

}  // namespace outrider
