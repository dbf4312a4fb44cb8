#include "serve/job.h"

#include <span>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "request/draft_defaults.h"
#include "serve/prompt.h"

namespace outrider {
namespace {

// Until the text is finished; what is there then takes its place.
Remembered not_remembered_yet(std::string name, bool remembering) {
  return {.name_space = std::move(name),
          .tokens = 0,
          .reason = remembering ? "the text was not finished"
                                : "no texts are remembered here: the operator has not switched it "
                                  "on (remember_tokens)"};
}

Result<Request> make_request(CompletionRequest& r, Prompt prompt, const Target& target) {
  OUTRIDER_RETURN_IF_ERROR(check_rule(r, target.exact_mode()));
  OUTRIDER_RETURN_IF_ERROR(check_own_head(r, target.no_head_reason()));
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<Sampler> sampler, target.make_sampler(r.sampling));
  Request request;
  request.prompt = std::move(prompt.tokens);
  request.shown = std::move(prompt.shown);
  request.sampler = std::move(sampler);
  request.seed = chosen_seed(r);
  request.max_tokens = r.max_tokens;
  request.stop = std::move(r.stop);
  request.rule = r.rule;
  request.draft = r.draft;
  fill_branches(request.draft, r.rule, r.width);
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
  if (!r.speculative) {
    request.speculation_off_reason = "the request asked for plain decoding";
  } else if (r.width == 1) {
    request.speculation_off_reason = "width=1 is plain decoding";
  }
  OUTRIDER_RETURN_IF_ERROR(check_request(target.capabilities(), request));
  return request;
}

// Fills in the texts of what is likely to be reused, and of the rest.
Status note_texts(PromptStats& stats, const std::vector<Token>& tokens, std::size_t n_cached,
                  const Vocabulary& vocabulary) {
  const auto middle = tokens.begin() + static_cast<std::ptrdiff_t>(n_cached);
  const std::vector<Token> cached(tokens.begin(), middle);
  const std::vector<Token> rest(middle, tokens.end());
  OUTRIDER_ASSIGN_OR_RETURN(stats.cached, vocabulary.detokenize(cached));
  OUTRIDER_ASSIGN_OR_RETURN(stats.to_evaluate, vocabulary.detokenize(rest));
  return Status();
}

}  // namespace

Result<JobPtr> make_job(CompletionRequest r, std::shared_ptr<Station> station,
                        const IdleTexts& idle, bool remembering) {
  const JobPtr job = std::make_shared<Job>();
  job->asked_at = Job::Clock::now();
  job->result = std::make_shared<CompletionResult>();
  job->station = std::move(station);
  const Target& target = *job->station->target();
  if (r.timeout_ms > 0) {
    job->deadline = job->asked_at + std::chrono::milliseconds(r.timeout_ms);
  }
  OUTRIDER_ASSIGN_OR_RETURN(Prompt prompt, make_prompt(r, target));
  PromptStats& stats = job->result->prompt;
  stats.n_ctx = target.capabilities().n_ctx;
  stats.n_tokens = static_cast<std::int64_t>(prompt.tokens.size());
  stats.n_tokens_asked = prompt.n_asked;
  const std::optional<IdleTexts::Choice> choice =
      idle.choose(prompt.tokens, prefix_use(target.capabilities()));
  const std::size_t n_cached = choice ? choice->kept : 0;
  stats.n_cached = static_cast<std::int64_t>(n_cached);
  if (r.prompt_texts) {
    OUTRIDER_RETURN_IF_ERROR(note_texts(stats, prompt.tokens, n_cached, target.vocabulary()));
  }
  job->speculative = r.speculative && r.width != 1;
  job->result->reader = std::move(prompt.reader);
  OUTRIDER_ASSIGN_OR_RETURN(job->request, make_request(r, std::move(prompt), target));
  job->result->completion.seed = job->request.seed;
  job->result->completion.prompt_tokens = stats.n_tokens;
  job->result->exactness = target.exactness();
  job->result->kernels = target.info().kernels;
  job->result->model = target.info().path;
  if (r.name_space) job->result->remembered = not_remembered_yet(*r.name_space, remembering);
  return job;
}

}  // namespace outrider
