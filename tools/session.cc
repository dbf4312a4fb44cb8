#include "tools/session.h"

#include <utility>

#include "backend/llama_loader.h"
#include "serve/station.h"

namespace outrider::tools {
namespace {

LoadHooks load_hooks(const SessionHooks& hooks, std::string title) {
  return {.progress = [&bar = hooks.progress,
                       title = std::move(title)](double fraction) { bar.update(title, fraction); },
          .cancel = hooks.signals.flag(),
          .log = hooks.log};
}

// The file's name without its folders, for a progress bar.
std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options,
                                               const SessionHooks& hooks) {
  std::unique_ptr<Session> session(new Session());
  LlamaLoaderOptions how;
  how.speculation = options.speculation;
  how.measure_costs = options.planned;
  how.refresh_costs = options.refresh_costs;
  if (options.whole_probe) how.probe_budget_ms = 1e12;
  how.probe_progress = [&bar = hooks.progress](double f) { bar.update("checking exactness", f); };
  LlamaLoader loader(how);
  Result<std::unique_ptr<Target>> target = loader.load_target(
      options.target, load_hooks(hooks, "loading " + base_name(options.target.path)));
  if (!target.ok()) return target.status();
  session->target_ = std::move(*target);
  std::vector<Drafter*> drafters;
  if (options.draft) {
    Result<std::unique_ptr<Draft>> draft =
        loader.load_draft(*options.draft, session->target_,
                          load_hooks(hooks, "loading " + base_name(options.draft->path)));
    if (!draft.ok()) return draft.status();
    session->draft_ = std::move(*draft);
    drafters.push_back(&session->draft_->drafter());
  }
  OUTRIDER_RETURN_IF_ERROR(session->open_lookups(options, drafters));
  drafters.insert(drafters.end(), options.other_drafters.begin(), options.other_drafters.end());
  hooks.progress.clear();
  EngineOptions engine_options;
  set_planning(*session->target_, engine_options);
  session->engine_ = std::make_unique<Engine>(session->target_->model(), session->vocabulary(),
                                              std::move(drafters), engine_options);
  session->recall_experience();
  session->collect_warnings(options);
  return session;
}

Session::~Session() {
  if (experiences_) experiences_->keep(*engine_);
}

void Session::recall_experience() {
  experiences_.emplace(target_->experiences());
  if (draft_) experiences_->recall(*engine_, draft_->drafter(), draft_->identity());
  if (suffix_) experiences_->recall(*engine_, *suffix_);
  if (ngrams_) experiences_->recall(*engine_, *ngrams_->drafter);
  if (recycle_) experiences_->recall(*engine_, *recycle_);
}

// The drafters without a model, in the order of their names (draft/base/drafter_plan.h).
Status Session::open_lookups(const SessionOptions& options, std::vector<Drafter*>& drafters) {
  if (options.suffix) {
    OUTRIDER_RETURN_IF_ERROR(open_suffix(options));
    drafters.push_back(suffix_.get());
  }
  if (options.ngrams) {
    Result<NgramDrafting> opened = open_ngram_drafting(*options.ngrams, tokenizer_id(vocabulary()));
    if (!opened.ok()) return opened.status();
    drafters.push_back(ngrams_.emplace(*std::move(opened)).drafter.get());
  }
  if (options.recycle) {
    const Capabilities& caps = target().capabilities();
    recycle_ = std::make_unique<RecycleDrafter>(caps.n_vocab, caps.n_sequences);
    drafters.push_back(recycle_.get());
  }
  return Status();
}

Status Session::open_suffix(const SessionOptions& options) {
  SuffixStores stores;
  const TokenizerId tokenizer = tokenizer_id(vocabulary());
  for (const std::string& path : options.suffix_stores) {
    Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(path, tokenizer);
    if (!store.ok()) return store.status();
    stores.push_back(*std::move(store));
  }
  suffix_ = std::make_unique<SuffixDrafter>(target().capabilities().n_sequences, std::move(stores));
  return Status();
}

void Session::collect_warnings(const SessionOptions& options) {
  const auto add = [this](const ModelInfo& model, const std::vector<std::string>& notes) {
    for (const std::string& note : notes) warnings_.push_back("'" + model.path + "': " + note);
  };
  add(target_->info(), target_->notes());
  if (draft_) add(draft_->info(), draft_->notes());
  const Capabilities& caps = target().capabilities();
  const std::int32_t width = options.target.widest;
  if (!options.speculation || caps.max_width >= width) return;
  if (!options.widest_is_wish && caps.max_width > 1) return;
  if (caps.n_batch < width && caps.max_width == caps.n_batch) {
    const std::string limit =
        "--batch " + std::to_string(caps.n_batch) + " leaves no room for wider steps";
    warnings_.push_back(caps.max_width > 1 ? limit : "speculation is off: " + limit);
    if (caps.max_width == 1) off_reason_ = limit;
    return;
  }
  const std::string limit = "'" + target_->info().path + "' takes at most " +
                            std::to_string(caps.max_width) +
                            (caps.max_width == 1 ? " token" : " tokens") + " in a step here";
  if (caps.max_width > 1) {
    warnings_.push_back(limit + ", so the width is " + std::to_string(caps.max_width) + ", not " +
                        std::to_string(width));
  } else {
    off_reason_ = caps.rollback_reason.empty() ? limit : caps.rollback_reason;
    warnings_.push_back("speculation is off: " + off_reason_);
  }
}

Result<Request> Session::request(std::vector<Token> prompt, const SamplingOptions& sampling,
                                 std::uint64_t seed, std::int32_t width) const {
  Result<std::unique_ptr<Sampler>> sampler = target_->make_sampler(sampling);
  if (!sampler.ok()) return sampler.status();
  Request request;
  request.prompt = std::move(prompt);
  request.sampler = std::move(*sampler);
  request.seed = seed;
  request.width = width;
  request.speculation_off_reason = off_reason_;
  return request;
}

// Control tokens may be spelled out, as in llama.cpp's own tools; a prompt is the user's own text.
Result<std::vector<Token>> Session::tokenize(std::string_view text) const {
  return vocabulary().tokenize(text, /*add_special=*/true, /*parse_special=*/true);
}

Result<std::vector<Token>> Session::tokenize(const std::vector<ChatMessage>& messages) const {
  Result<std::string> text = vocabulary().apply_chat_template(messages);
  if (!text.ok()) return text.status();
  return tokenize(*text);
}

Result<std::vector<std::vector<Token>>> Session::tokenize(std::span<const lab::Prompt> prompts,
                                                          bool chat) const {
  std::vector<std::vector<Token>> all;
  for (const lab::Prompt& prompt : prompts) {
    Result<std::vector<Token>> tokens = !prompt.messages.empty() ? tokenize(prompt.messages)
                                        : chat
                                            ? tokenize({{.role = "user", .content = prompt.text}})
                                            : tokenize(prompt.text);
    Status status = tokens.status();
    if (status.ok()) status = check_prompt(target().capabilities(), *tokens);
    if (!status.ok()) return status.with_context("prompt " + prompt.id);
    all.push_back(std::move(*tokens));
  }
  return all;
}

Result<Completion> generate(Session& session, Request request, SignalWatch& signals,
                            ProgressBar& progress,
                            const std::function<bool(const Update&)>& on_update) {
  Engine& engine = session.engine();
  const double n_prompt = static_cast<double>(request.prompt.size());
  const bool long_prompt = n_prompt > session.target().capabilities().n_batch;
  Result<RequestId> added = engine.add(std::move(request));
  if (!added.ok()) return added.status();
  const RequestId id = *added;
  signals.on_signal([&engine, id] { engine.cancel(id); });
  bool reading = long_prompt;
  while (engine.busy()) {
    const std::vector<Update> updates = engine.step();
    // The only request of this engine has the only sequence.
    if (reading) progress.update("reading the prompt", session.target().length(0) / n_prompt);
    for (const Update& update : updates) {
      if (reading) progress.clear();
      reading = false;
      if (!on_update(update)) engine.cancel(id);
    }
  }
  if (reading) progress.clear();
  signals.on_signal({});
  return engine.take(id);
}

}  // namespace outrider::tools
