#include "serve/jobs.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <string>
#include <utility>

#include "base/caught.h"

namespace outrider {
namespace {

constexpr std::chrono::milliseconds kHeldLook{250};  // between two looks at a result that is held

}  // namespace

Jobs::Jobs(RuntimeShared& shared, DrafterNotes& drafters)
    : shared_(shared),
      drafters_(drafters),
      last_id_(shared.options.last_id ? shared.options.last_id
                                      : std::make_shared<std::atomic<CompletionId>>(0)) {}

Status Jobs::check_room(std::size_t n) const {
  const RuntimeOptions& options = shared_.options;
  const std::size_t at_once =
      static_cast<std::size_t>(options.slots) + static_cast<std::size_t>(options.max_queue);
  if (n > at_once) {
    return invalid_argument("a request for " + std::to_string(n) +
                            " answers has no room here: at most " + std::to_string(at_once) +
                            " run and wait at once (slots and max_queue)");
  }
  if (queue_.size() + running_.size() + n <= at_once) return Status();
  return resource_exhausted("the queue is full: " + std::to_string(running_.size()) +
                            " requests are running and " + std::to_string(queue_.size()) +
                            " are waiting; try again later");
}

void Jobs::add(const JobPtr& job) {
  job->id = ++*last_id_;
  job->polled_at = Job::Clock::now();
  queue_.push_back(job);
  try {
    known_.emplace(job->id, job);
  } catch (...) {  // out of memory: as if nothing had happened
    queue_.pop_back();
    throw;
  }
  ++totals_.started;
  if (job->deadline || shared_.options.end_unpolled) shared_.deadline_set.notify_all();
  shared_.decode_work.notify_all();
}

Result<PolledCompletion> Jobs::poll(CompletionId id, std::int64_t wait_ms, Lock& lock) {
  const JobPtr job = find(id);
  if (job == nullptr) return unknown(id);
  const auto ready = [&job] { return job->has_news(); };
  if (wait_ms > 0 && !ready()) {
    ++polls_;
    ++job->polls;
    job->changed.wait_for(lock, RuntimeShared::wait_time(wait_ms), ready);
    --job->polls;
    if (--polls_ == 0) no_poll_.notify_all();
  }
  job->polled_at = Job::Clock::now();
  PolledCompletion polled;
  polled.tokens.swap(job->fresh);
  polled.guesses = job->guesses;
  polled.prompt_progress = job->prompt_progress;
  if (!job->finished) return polled;
  polled.finished = true;
  polled.result = job->result;
  known_.erase(id);
  return polled;
}

void Jobs::wait_any(std::span<const CompletionId> ids, std::int64_t wait_ms, Lock& lock) {
  std::vector<JobPtr> jobs;
  for (const CompletionId id : ids) {
    jobs.push_back(find(id));
    if (jobs.back() == nullptr) return;
  }
  const auto ready = [&jobs] {
    return std::any_of(jobs.begin(), jobs.end(), [](const JobPtr& job) { return job->has_news(); });
  };
  if (wait_ms <= 0 || ready()) return;
  ++polls_;
  for (const JobPtr& job : jobs) ++job->polls;
  any_changed_.wait_for(lock, RuntimeShared::wait_time(wait_ms), ready);
  for (const JobPtr& job : jobs) {
    --job->polls;
    job->polled_at = Job::Clock::now();
  }
  if (--polls_ == 0) no_poll_.notify_all();
}

// Of an id that other runtimes may have given it cannot be told whose it was.
Status Jobs::unknown(CompletionId id) const {
  const std::string which = "there is no completion " + std::to_string(id);
  if (id < 1 || id > last_id_->load()) return not_found(which + ": it was never started");
  const std::string why =
      ": its result has been handed out, or nobody polled for it within "
      "retention_ms (" +
      std::to_string(shared_.options.retention_ms) + ")";
  if (shared_.options.last_id == nullptr) return not_found(which + " any more" + why);
  return not_found(which + " here" + why +
                   ", or it is another model's, or this one was closed and opened since");
}

Status Jobs::cancel(CompletionId id) {
  const JobPtr job = find(id);
  if (job == nullptr) return not_found("there is no completion " + std::to_string(id));
  end(*job, EndedBy::kClient);
  return Status();
}

JobPtr Jobs::find(CompletionId id) const {
  const std::map<CompletionId, JobPtr>::const_iterator found = known_.find(id);
  return found == known_.end() ? nullptr : found->second;
}

std::size_t Jobs::open_jobs(const Station& station) const {
  const auto here = [&station](const JobPtr& job) { return job->station.get() == &station; };
  return static_cast<std::size_t>(std::count_if(queue_.begin(), queue_.end(), here) +
                                  std::count_if(running_.begin(), running_.end(), here));
}

bool Jobs::runs_any(const Station& station) const {
  return std::any_of(running_.begin(), running_.end(),
                     [&station](const JobPtr& job) { return job->station.get() == &station; });
}

JobPtr Jobs::find_running(const Station& station, RequestId id) const {
  const std::vector<JobPtr>::const_iterator found = std::find_if(
      running_.begin(), running_.end(),
      [&](const JobPtr& job) { return job->station.get() == &station && job->running == id; });
  return found == running_.end() ? nullptr : *found;
}

JobPtr Jobs::admit(std::size_t i) {
  JobPtr job = queue_[i];
  running_.reserve(running_.size() + 1);  // from here on nothing is lost for want of memory
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
  running_.push_back(job);
  job->note_end_of_wait();
  return job;
}

void Jobs::give_out(Job& job, std::vector<SaidToken> tokens) {
  post(job, tokens);
  job.fresh.insert(job.fresh.end(), std::make_move_iterator(tokens.begin()),
                   std::make_move_iterator(tokens.end()));
  job.changed.notify_all();
  any_changed_.notify_all();
}

void Jobs::post(const Job& job, const std::vector<SaidToken>& tokens) {
  shared_.events.tell([&] {
    return RuntimeEvent{
        .completion = CompletionEvent{
            .id = job.id, .tokens = tokens, .result = job.finished ? job.result : nullptr}};
  });
}

bool Jobs::waits(const Job& job) const {
  return std::any_of(queue_.begin(), queue_.end(),
                     [&job](const JobPtr& other) { return other.get() == &job; });
}

void Jobs::finish(Job& job) {
  const auto same = [&job](const JobPtr& other) { return other.get() == &job; };
  const JobPtr keep = known_.at(job.id);
  job.finished = true;
  job.finished_at = Job::Clock::now();
  job.prompt_progress = 1.0;
  job.result->ended_by =
      job.result->completion.finish == FinishReason::kCancelled ? job.ended_by : EndedBy::kItself;
  if (std::erase_if(queue_, same) > 0) job.note_end_of_wait();
  std::erase_if(running_, same);
  job.running.reset();
  job.request = Request();
  job.station.reset();
  ++totals_.finished;
  count(job.result->completion);
  shared_.deadline_set.notify_all();  // of when it is forgotten
  job.changed.notify_all();
  any_changed_.notify_all();
  post(job, {});
}

void Jobs::fail(Job& job, Status why) {
  job.result->completion.error = std::move(why);
  job.result->completion.finish = FinishReason::kError;
  finish(job);
}

void Jobs::end(Job& job, EndedBy by) {
  if (job.finished || job.ended_by != EndedBy::kItself) return;
  if (job.running) job.station->engine().cancel(*job.running);  // first: it may fail
  job.ended_by = by;
  if (!waits(job)) return;  // where it is on its way into the engine, that looks at ended_by
  job.result->completion.finish = FinishReason::kCancelled;
  finish(job);
}

void Jobs::end_all_of(const Station& station, EndedBy by) {
  std::vector<JobPtr> open(queue_.begin(), queue_.end());  // those that wait leave the queue
  open.insert(open.end(), running_.begin(), running_.end());
  for (const JobPtr& job : open) {
    if (job->station.get() == &station) end(*job, by);
  }
}

void Jobs::fail_running(const Station& station, const Status& why) {
  for (std::size_t i = 0; i < running_.size();) {
    const JobPtr job = running_[i];
    if (job->station.get() != &station) {
      ++i;
      continue;
    }
    Status reason;
    try {
      reason = why;
    } catch (const std::bad_alloc& lacking) {  // it must end all the same
      reason = caught(lacking);
    }
    fail(*job, std::move(reason));
  }
}

Jobs::TimePoint Jobs::due(const Job& job) const {
  const std::chrono::milliseconds retention(shared_.options.retention_ms);
  if (job.finished) {
    // Nobody says when it is let go.
    if (!job.hold.expired()) return Job::Clock::now() + kHeldLook;
    return job.finished_at + retention;
  }
  if (job.ended_by != EndedBy::kItself) return TimePoint::max();
  const TimePoint deadline = job.deadline.value_or(TimePoint::max());
  if (!shared_.options.end_unpolled) return deadline;
  const bool wanted =
      job.polls > 0 || !job.hold.expired();  // now: so not before it is looked again
  return std::min(deadline, (wanted ? Job::Clock::now() : job.polled_at) + retention);
}

void Jobs::end_due(TimePoint now) {
  for (const auto& [id, job] : known_) {
    if (job->finished || due(*job) > now) continue;
    try {
      end(*job, EndedBy::kTimeout);
    } catch (const std::bad_alloc&) {  // then once more, at once: it stays due
    }
  }
  std::erase_if(known_, [&](const std::pair<const CompletionId, JobPtr>& entry) {
    return entry.second->finished && due(*entry.second) <= now;
  });
}

void Jobs::keep_time() {
  Lock lock(shared_.mutex);
  while (!shared_.stop) {
    end_due(Job::Clock::now());
    TimePoint next = TimePoint::max();
    for (const auto& [id, job] : known_) next = std::min(next, due(*job));
    if (next < TimePoint::max()) {
      shared_.deadline_set.wait_until(lock, next);
    } else {
      shared_.deadline_set.wait(lock);
    }
  }
}

void Jobs::end_running(EndedBy by) {
  for (const JobPtr& job : running_) {
    try {
      end(*job, by);
    } catch (const std::bad_alloc&) {  // then end_everything() does it
    }
  }
}

void Jobs::end_everything(Lock& lock) {
  while (!queue_.empty() || !running_.empty()) {  // without a copy: there may be no memory
    const JobPtr job = queue_.empty() ? running_.front() : queue_.front();
    job->ended_by = EndedBy::kShutdown;
    job->result->completion.finish = FinishReason::kCancelled;
    finish(*job);
  }
  no_poll_.wait(lock, [this] { return polls_ == 0; });
}

void Jobs::count(const Completion& c) {
  totals_.prompt_tokens += c.timings.prompt_tokens_evaluated;
  totals_.cached_tokens += c.cached_tokens;
  totals_.generated_tokens += static_cast<std::int64_t>(c.tokens.size());
  totals_.drafted_tokens += c.speculation.drafted;
  totals_.accepted_tokens += c.speculation.accepted;
  totals_.steps += c.speculation.steps;
  totals_.emitted_tokens += c.speculation.emitted;
  for (std::size_t i = 0; i < c.speculation.by_depth.size(); ++i) {
    totals_.by_depth[std::min(i, kCountedDepths - 1)].add(c.speculation.by_depth[i]);
  }
  drafters_.count(c);
}

std::string Jobs::check_integrity(std::size_t most) const {
  for (const JobPtr& job : queue_) {
    if (job->running || job->finished) return "a waiting job is running or finished";
    if (!job->station) return "a waiting job has no station";
  }
  for (const JobPtr& job : running_) {
    if (job->finished || !job->station) return "a running job is finished";
  }
  if (running_.size() > most) return "more requests are running than there are slots";
  const std::int64_t open = totals_.started - totals_.finished;
  if (open != static_cast<std::int64_t>(queue_.size() + running_.size())) {
    return "a request is lost: " + std::to_string(open) + " are open, " +
           std::to_string(queue_.size()) + " wait, " + std::to_string(running_.size()) + " run";
  }
  return "";
}

}  // namespace outrider
