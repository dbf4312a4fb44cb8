// The decode thread. A turn is a list of passes:
//
//   install   drafts and drafters' files that were loaded or are to go: between two steps
//   admit     waiting requests into free slots, in order of arrival
//   step      one engine step per station; what it says goes to the jobs
//   expire    results that nobody fetched
//   release   stations that nobody needs any more
//
// After install nobody uses a draft that was taken away. After step every finished completion has
// its result.
#include <algorithm>
#include <exception>

#include "serve/runtime_impl.h"

namespace outrider {

bool Runtime::Impl::has_work() const {
  return stop_ || !changes_.empty() || !running_.empty() || !queue_.empty() ||
         std::any_of(stations_.begin(), stations_.end(),
                     [this](const std::shared_ptr<Station>& s) { return s != current_; });
}

std::optional<Job::Clock::time_point> Runtime::Impl::next_expiry() const {
  std::optional<Job::Clock::time_point> next;
  for (const auto& [id, job] : jobs_) {
    if (!job->finished) continue;
    const Job::Clock::time_point end =
        job->finished_at + std::chrono::milliseconds(options.retention_ms);
    next = next ? std::min(*next, end) : end;
  }
  return next;
}

void Runtime::Impl::decode_loop() {
  while (true) {
    {
      Lock lock(mutex_);
      while (!has_work()) {
        const std::optional<Job::Clock::time_point> next = next_expiry();
        if (!next) {
          decode_work_.wait(lock);
        } else if (decode_work_.wait_until(lock, *next) == std::cv_status::timeout) {
          break;
        }
      }
      if (stop_) return;
    }
    try {
      install();
      admit();
      step();
      expire();
      release_stations();
    } catch (const std::exception&) {  // out of memory between two steps: nothing is half done
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

// At the end of the runtime, when the threads are gone: whoever waits for a completion gets it.
void Runtime::Impl::end_all() {
  Lock lock(mutex_);
  while (!queue_.empty() || !running_.empty()) {  // without a copy: there may be no memory
    const JobPtr job = queue_.empty() ? running_.front() : queue_.front();
    job->ended_by = EndedBy::kShutdown;
    job->result->completion.finish = FinishReason::kCancelled;
    finish(*job);
  }
  no_poll_.wait(lock, [this] { return polls_ == 0; });
}

void Runtime::Impl::install() {
  while (true) {
    Change change;
    {
      const Lock lock(mutex_);
      if (changes_.empty()) return;
      change = std::move(changes_.front());
      changes_.pop_front();
    }
    if (std::holds_alternative<std::unique_ptr<Draft>>(change.what)) {
      install_draft(std::move(change));
    } else {
      install_file(std::move(change));
    }
  }
}

void Runtime::Impl::install_draft(Change change) {
  bool failed = false;
  try {
    change.station->set_draft(std::move(std::get<std::unique_ptr<Draft>>(change.what)),
                              change.reason);
  } catch (const std::exception&) {
    failed = true;
    change.station->set_draft(nullptr, "out of memory");
  }
  const Lock lock(mutex_);
  if (change.station != current_) return;
  note_drafters(*change.station);
  if (!failed) return;
  draft_role_.status.serving = false;
  set_status(ModelRole::kDraft, ModelState::kFailed, resource_exhausted("out of memory"));
}

void Runtime::Impl::admit() {
  Lock lock(mutex_);
  for (std::size_t i = 0; i < queue_.size();) {
    const JobPtr job = queue_[i];
    if (job->station->engine().idle().entries().empty()) {
      ++i;
      continue;
    }
    std::string why = why_without(*job);
    DrafterPlan automatic = automatic_drafters(job->request.rule, drafters_with_files());
    running_.reserve(running_.size() + 1);  // from here on nothing is lost for want of memory
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
    running_.push_back(job);
    Request request = std::move(job->request);
    if (request.drafters.empty()) request.drafters = std::move(automatic);
    if (request.speculation_off_reason.empty()) request.speculation_off_reason = std::move(why);
    add_to_engine(*job, std::move(request), lock);
    i = 0;  // the queue may have changed while it was unlocked
  }
}

// `lock` is open while the engine is at work.
void Runtime::Impl::add_to_engine(Job& job, Request request, Lock& lock) {
  lock.unlock();
  std::optional<RequestId> id;
  Status status;
  try {
    const Result<RequestId> added = job.station->engine().add(std::move(request));
    status = added.status();
    if (added.ok()) id = *added;
  } catch (const std::exception&) {
    status = resource_exhausted("out of memory");
  }
  lock.lock();
  if (!id) return fail(job, std::move(status));
  job.running = id;
  if (job.ended_by != EndedBy::kItself) job.station->engine().cancel(*id);
  note_idle(*job.station);
}

void Runtime::Impl::step() {
  std::vector<std::shared_ptr<Station>> stations;
  {
    const Lock lock(mutex_);
    stations = stations_;
  }
  for (const std::shared_ptr<Station>& station : stations) {
    if (!station->engine().busy()) continue;
    try {
      publish(*station, station->engine().step());
      note_progress(*station);
      station->keep_experience();
      const Status health = station->target()->model().health();
      if (!health.ok()) lose_target(*station, health);
    } catch (const std::exception&) {  // out of memory
      restart(*station);
    }
  }
}

void Runtime::Impl::publish(Station& station, std::vector<Update> updates) {
  if (std::any_of(updates.begin(), updates.end(), [](const Update& u) { return u.finished; })) {
    const Lock lock(mutex_);
    note_idle(station);  // first: whoever sees a result may start the next request at once
  }
  for (Update& update : updates) {
    std::vector<SaidToken> tokens;
    for (std::size_t i = 0; i < update.pieces.size(); ++i) {
      Piece& piece = update.pieces[i];
      SaidToken& said = tokens.emplace_back();
      said.id = piece.id;
      said.text = std::move(piece.text);
      said.by = station.engine().name_of(piece.by);
      if (i < update.logprobs.size()) said.logprob = std::move(update.logprobs[i]);
    }
    std::optional<Completion> completion;
    if (update.finished) completion = std::move(*station.engine().take(update.id));
    const JobPtr job = running_job(station, update.id);
    if (job == nullptr) continue;
    std::optional<Remembered> remembered;
    if (completion) remembered = remember(station, *job, *completion);
    const Lock lock(mutex_);
    if (!tokens.empty()) give_out(*job, std::move(tokens));
    if (!completion) continue;
    if (remembered) {
      note_drafters(station);  // whoever sees the result sees what is remembered, too
      job->result->remembered = std::move(remembered);
    }
    job->result->shifted = completion->shifts > 0;
    job->result->completion = std::move(*completion);
    job->result->prompt.n_cached = job->result->completion.cached_tokens;
    finish(*job);
  }
}

Runtime::Impl::JobPtr Runtime::Impl::running_job(const Station& station, RequestId id) const {
  const Lock lock(mutex_);
  const std::vector<JobPtr>::const_iterator found = std::find_if(
      running_.begin(), running_.end(),
      [&](const JobPtr& job) { return job->station.get() == &station && job->running == id; });
  return found == running_.end() ? nullptr : *found;
}

void Runtime::Impl::note_progress(const Station& station) {
  const Lock lock(mutex_);
  note_drafters(station);
  for (const JobPtr& job : running_) {
    if (job->station.get() != &station || !job->running) continue;
    job->prompt_progress = station.engine().prompt_progress(*job->running);
  }
}

// What the idle sequences hold has changed: a request has taken one, or given one back.
void Runtime::Impl::note_idle(const Station& station) {
  if (&station == current_.get()) idle_ = station.engine().idle();
}

// An exception out of a step leaves the engine in no known state: its requests end, and it begins
// anew. Needs no memory but the new engine's.
void Runtime::Impl::restart(Station& station) {
  {
    const Lock lock(mutex_);
    for (std::size_t i = 0; i < running_.size();) {
      const JobPtr job = running_[i];
      if (job->station.get() != &station) {
        ++i;
        continue;
      }
      fail(*job, resource_exhausted("out of memory"));
    }
  }
  while (true) {  // nobody has anything on it now, so without the lock
    try {
      station.restart();
      const Lock lock(mutex_);
      return note_idle(station);
    } catch (const std::exception&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const Lock lock(mutex_);
    if (stop_) return;
  }
}

// The process that ran it is gone: its requests have ended with that, and new ones are refused.
void Runtime::Impl::lose_target(const Station& station, const Status& why) {
  const Lock lock(mutex_);
  if (current_.get() != &station) return;
  const bool had_draft = draft_role_.status.serving && !draft_role_.order;
  reorder_files();  // they wait for the next target, as the draft does
  take_out_of_service();
  if (had_draft) order(ModelRole::kDraft, draft_role_.serving);  // waits for the next target
  set_status(ModelRole::kTarget, target_role_.order ? ModelState::kLoading : ModelState::kFailed,
             target_role_.order ? Status() : why);
}

void Runtime::Impl::give_out(Job& job, std::vector<SaidToken> tokens) {
  post(job, tokens);
  if (job.fresh.empty()) {
    job.fresh = std::move(tokens);
  } else {
    job.fresh.insert(job.fresh.end(), std::make_move_iterator(tokens.begin()),
                     std::make_move_iterator(tokens.end()));
  }
  job.changed.notify_all();
}

// Without memory an event is lost, the completion is not.
void Runtime::Impl::post(const Job& job, const std::vector<SaidToken>& tokens) {
  if (!events.wanted()) return;
  try {
    RuntimeEvent event;
    event.completion = CompletionEvent{
        .id = job.id, .tokens = tokens, .result = job.finished ? job.result : nullptr};
    events.post(std::move(event));
  } catch (const std::exception&) {
  }
}

// The job's result is complete. It leaves the queue or its slot.
void Runtime::Impl::finish(Job& job) {
  const auto same = [&job](const JobPtr& other) { return other.get() == &job; };
  const JobPtr keep = jobs_.at(job.id);
  job.finished = true;
  job.finished_at = Job::Clock::now();
  job.prompt_progress = 1.0;
  job.result->ended_by =
      job.result->completion.finish == FinishReason::kCancelled ? job.ended_by : EndedBy::kItself;
  std::erase_if(queue_, same);
  std::erase_if(running_, same);
  job.running.reset();
  job.request = Request();
  job.station.reset();
  ++totals_.finished;
  count(job.result->completion);
  job.changed.notify_all();
  post(job, {});
}

void Runtime::Impl::fail(Job& job, Status why) {
  job.result->completion.error = std::move(why);
  job.result->completion.finish = FinishReason::kError;
  finish(job);
}

// Ends it with what it has: at once while it waits, within one step while it runs.
void Runtime::Impl::end(Job& job, EndedBy by) {
  if (job.finished || job.ended_by != EndedBy::kItself) return;
  job.ended_by = by;
  const bool waits = std::any_of(queue_.begin(), queue_.end(),
                                 [&job](const JobPtr& other) { return other.get() == &job; });
  if (waits) {
    job.result->completion.finish = FinishReason::kCancelled;
    finish(job);
  } else if (job.running) {
    job.station->engine().cancel(*job.running);
  }  // else it is on its way into the engine, which looks at ended_by
}

void Runtime::Impl::count(const Completion& c) {
  totals_.prompt_tokens += c.timings.prompt_tokens_evaluated;
  totals_.cached_tokens += c.cached_tokens;
  totals_.generated_tokens += static_cast<std::int64_t>(c.tokens.size());
  totals_.drafted_tokens += c.speculation.drafted;
  totals_.accepted_tokens += c.speculation.accepted;
  totals_.steps += c.speculation.steps;
  for (const DrafterStats& d : c.speculation.drafters) {
    DrafterStats& sum = note_of(d.name).totals;
    sum.calls += d.calls;
    sum.drafts += d.drafts;
    sum.accepted_drafts += d.accepted_drafts;
    sum.drafted += d.drafted;
    sum.accepted += d.accepted;
    sum.foregone += d.foregone;
    sum.draft_ms += d.draft_ms;
    sum.accept_ms += d.accept_ms;
  }
}

void Runtime::Impl::expire() {
  const Lock lock(mutex_);
  const Job::Clock::time_point now = Job::Clock::now();
  const Job::Clock::duration retention = std::chrono::milliseconds(options.retention_ms);
  std::erase_if(jobs_, [&](const std::pair<const CompletionId, JobPtr>& entry) {
    const JobPtr& job = entry.second;
    return job->finished && now - job->finished_at >= retention;
  });
}

void Runtime::Impl::deadline_loop() {
  Lock lock(mutex_);
  while (!stop_) {
    const Job* next = nullptr;
    for (const std::pair<const CompletionId, JobPtr>& entry : jobs_) {
      const Job& job = *entry.second;
      const bool open = job.deadline && !job.finished && job.ended_by == EndedBy::kItself;
      if (open && (next == nullptr || *job.deadline < *next->deadline)) next = &job;
    }
    if (next == nullptr) {
      deadline_set_.wait(lock);
      continue;
    }
    const CompletionId id = next->id;
    const Job::Clock::time_point deadline = *next->deadline;
    if (deadline_set_.wait_until(lock, deadline) == std::cv_status::no_timeout) continue;
    const std::map<CompletionId, JobPtr>::iterator late = jobs_.find(id);
    if (late == jobs_.end()) continue;
    const JobPtr job = late->second;
    try {
      end(*job, EndedBy::kTimeout);
    } catch (const std::bad_alloc&) {  // then it is ended after the step that is running
    }
  }
}

std::size_t Runtime::Impl::waiting_jobs(const Station& station) const {
  const auto here = [&station](const JobPtr& job) { return job->station.get() == &station; };
  return static_cast<std::size_t>(std::count_if(queue_.begin(), queue_.end(), here) +
                                  std::count_if(running_.begin(), running_.end(), here));
}

void Runtime::Impl::release_stations() {
  std::vector<std::shared_ptr<Station>> done;  // freed without the lock: it may take a while
  const Lock lock(mutex_);
  for (const std::shared_ptr<Station>& station : stations_) {
    if (station != current_ && waiting_jobs(*station) == 0) done.push_back(station);
  }
  for (const std::shared_ptr<Station>& station : done) std::erase(stations_, station);
}

}  // namespace outrider
