#include "serve/decode_loop.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "draft/base/drafter_plan.h"

namespace outrider {

DecodeLoop::DecodeLoop(RuntimeShared& shared, Jobs& jobs, Stations& stations, ModelLoads& models,
                       FileLoads& files, DrafterNotes& drafters, IdleWork& idle_work)
    : shared_(shared),
      jobs_(jobs),
      stations_(stations),
      models_(models),
      files_(files),
      drafters_(drafters),
      idle_work_(idle_work),
      thread_([this] { run(); }) {}

void DecodeLoop::run() {
  while (wait_for_work()) {
    try {
      install();
      admit();
      step();
      expire();
      release();
      lend();
    } catch (const std::exception&) {  // out of memory between two steps: nothing is half done
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

bool DecodeLoop::has_work() const {
  return shared_.stop || stations_.has_changes() || idle_work_.wanted() ||
         !jobs_.running().empty() || !jobs_.waiting().empty() ||
         std::any_of(stations_.all().begin(), stations_.all().end(),
                     [this](const StationPtr& s) { return s != stations_.current(); });
}

// Until there is a turn's work, a result to forget included. False: the runtime is at its end.
bool DecodeLoop::wait_for_work() {
  Lock lock(shared_.mutex);
  while (!has_work()) {
    const std::optional<Jobs::TimePoint> next = jobs_.next_expiry();
    if (!next) {
      shared_.decode_work.wait(lock);
    } else if (shared_.decode_work.wait_until(lock, *next) == std::cv_status::timeout) {
      break;
    }
  }
  return !shared_.stop;
}

void DecodeLoop::install() {
  while (true) {
    std::optional<StationChange> change;
    {
      const Lock lock(shared_.mutex);
      change = stations_.take_change();
    }
    if (!change) return;
    if (std::holds_alternative<std::unique_ptr<Draft>>(change->what)) {
      install_draft(*std::move(change));
    } else if (std::holds_alternative<OpenedDrafterFile>(change->what)) {
      add_file(*change);
    } else {
      remove_file(*std::move(change));
    }
  }
}

void DecodeLoop::install_draft(StationChange change) {
  bool failed = false;
  try {
    change.station->set_draft(std::move(std::get<std::unique_ptr<Draft>>(change.what)),
                              change.reason);
  } catch (const std::exception&) {
    failed = true;
    change.station->set_draft(nullptr, "out of memory");
  }
  const Lock lock(shared_.mutex);
  if (change.station != stations_.current()) return;
  note_drafters(*change.station);
  if (failed) models_.draft_not_installed(resource_exhausted("out of memory"));
}

void DecodeLoop::add_file(const StationChange& change) {
  const OpenedDrafterFile& opened = std::get<OpenedDrafterFile>(change.what);
  try {
    change.station->add_file(opened);
  } catch (const std::exception&) {
    const Lock lock(shared_.mutex);
    if (change.station != stations_.current()) return;
    files_.not_installed(opened.file, resource_exhausted("out of memory"));
  }
}

void DecodeLoop::remove_file(StationChange change) {
  std::vector<StationPtr> stations;
  try {
    const Lock lock(shared_.mutex);
    stations = stations_.all();
  } catch (const std::bad_alloc&) {  // once more later: a file that was taken away is not used
    const Lock lock(shared_.mutex);
    stations_.add_first(std::move(change));
    throw;
  }
  const DrafterFile& gone = std::get<DrafterFile>(change.what);
  for (const StationPtr& station : stations) station->remove_file(gone, change.reason);
}

// There is a sequence for it, and its target is not about to be lent.
bool DecodeLoop::may_admit(const Job& job) const {
  if (job.station->engine().idle().entries().empty()) return false;
  return !idle_work_.wanted() || job.station != stations_.current();
}

std::string DecodeLoop::why_no_draft(const Job& job) const {
  if (job.station != stations_.current()) return "its target was replaced, and has no draft model";
  const LoadTask& draft = models_.task(ModelRole::kDraft);
  if (draft.state() == LoadTask::State::kFailed) {
    return "the draft model could not be loaded: " + draft.error().message();
  }
  // One that is ready is on its way here.
  return draft.state() == LoadTask::State::kAbsent
             ? "no draft model is loaded"
             : "the draft model was still loading when the request began";
}

std::string DecodeLoop::why_without_loaded(const Job& job) const {
  const bool coupled = job.request.rule == AcceptanceRule::kCoupled;
  const bool missed =
      !coupled || models_.task(ModelRole::kDraft).state() != LoadTask::State::kAbsent;
  std::string why = missed && job.station->draft() == nullptr ? why_no_draft(job) : "";
  if (!coupled || job.station != stations_.current()) return why;
  const std::string failures = files_.failures();
  if (!why.empty() && !failures.empty()) why += "; ";
  return why + failures;
}

std::string DecodeLoop::why_without(const Job& job) const {
  if (!job.speculative) return "";
  if (job.request.drafters.empty()) return why_without_loaded(job);
  const std::vector<Drafter*>& drafters = job.station->engine().drafters();
  std::string why;
  for (const std::vector<std::string>& chain : job.request.drafters.chains) {
    for (const std::string& name : chain) {
      const bool there = std::any_of(drafters.begin(), drafters.end(), [&name](const Drafter* d) {
        return d != nullptr && d->name() == name;
      });
      if (there) continue;
      if (!why.empty()) why += "; ";
      if (name == kDraftModelName) {
        why += why_no_draft(job);
      } else if (name == kMtpName) {
        why += job.station->target()->no_head_reason();
      } else {
        why += "'" + name + "' is not attached";
      }
    }
  }
  return why;
}

void DecodeLoop::admit() {
  Lock lock(shared_.mutex);
  for (std::size_t i = 0; i < jobs_.waiting().size();) {
    const Job& waiting = *jobs_.waiting()[i];
    if (!may_admit(waiting)) {
      ++i;
      continue;
    }
    std::string why = why_without(waiting);
    DrafterPlan automatic = automatic_drafters(waiting.request.rule, files_.drafters_with_files());
    const JobPtr job = jobs_.admit(i);
    Request request = std::move(job->request);
    if (request.drafters.empty()) request.drafters = std::move(automatic);
    if (request.speculation_off_reason.empty()) request.speculation_off_reason = std::move(why);
    add_to_engine(*job, std::move(request), lock);
    i = 0;  // the queue may have changed while it was unlocked
  }
}

// `lock` is open while the engine is at work.
void DecodeLoop::add_to_engine(Job& job, Request request, Lock& lock) {
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
  if (!id) return jobs_.fail(job, std::move(status));
  job.running = id;
  if (job.ended_by != EndedBy::kItself) job.station->engine().cancel(*id);
  stations_.note_idle(*job.station);
}

void DecodeLoop::step() {
  std::vector<StationPtr> stations;
  {
    const Lock lock(shared_.mutex);
    stations = stations_.all();
  }
  for (const StationPtr& station : stations) {
    if (!station->engine().busy()) continue;
    try {
      publish(*station, station->engine().step());
      note_progress(*station);
      station->keep_experience();
      const Status health = station->target()->model().health();
      if (health.ok()) continue;
      const Lock lock(shared_.mutex);
      models_.target_lost(*station, health);
    } catch (const std::exception&) {  // out of memory
      restart(*station);
    }
  }
}

void DecodeLoop::publish(Station& station, std::vector<Update> updates) {
  if (std::any_of(updates.begin(), updates.end(), [](const Update& u) { return u.finished; })) {
    const Lock lock(shared_.mutex);
    // First: whoever sees a result may start the next request at once.
    stations_.note_idle(station);
  }
  for (Update& update : updates) publish(station, std::move(update));
}

void DecodeLoop::publish(Station& station, Update update) {
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
  JobPtr job;
  {
    const Lock lock(shared_.mutex);
    job = jobs_.find_running(station, update.id);
  }
  if (job == nullptr) return;
  std::optional<Remembered> remembered;
  if (completion) remembered = remember(station, *job, *completion);
  const Lock lock(shared_.mutex);
  if (!tokens.empty()) jobs_.give_out(*job, std::move(tokens));
  if (!completion) return;
  if (remembered) {
    note_drafters(station);  // whoever sees the result sees what is remembered, too
    job->result->remembered = std::move(remembered);
  }
  job->result->shifted = completion->shifts > 0;
  job->result->completion = std::move(*completion);
  job->result->prompt.n_cached = job->result->completion.cached_tokens;
  jobs_.finish(*job);
}

// All that was said: its last tokens too, though a stop string cuts off what they say, as a later
// text is likely to end like this one. A text that was cancelled is remembered as far as it went:
// editors cancel what they ask for again. Without the lock.
std::optional<Remembered> DecodeLoop::remember(Station& station, const Job& job,
                                               const Completion& completion) const {
  const std::optional<Remembered>& asked = job.result->remembered;
  if (!asked || !station.remembers() || completion.finish == FinishReason::kError)
    return std::nullopt;
  return station.remember(asked->name_space, completion.tokens);
}

void DecodeLoop::note_drafters(const Station& station) {
  if (&station == stations_.current().get()) drafters_.note(station);
}

void DecodeLoop::note_progress(const Station& station) {
  const Lock lock(shared_.mutex);
  note_drafters(station);
  for (const JobPtr& job : jobs_.running()) {
    if (job->station.get() != &station || !job->running) continue;
    job->prompt_progress = station.engine().prompt_progress(*job->running);
  }
}

// An exception out of a step leaves the engine in no known state: its requests end, and it begins
// anew. Needs no memory but the new engine's.
void DecodeLoop::restart(Station& station) {
  {
    const Lock lock(shared_.mutex);
    jobs_.fail_running(station, resource_exhausted("out of memory"));
  }
  while (true) {  // nobody has anything on it now, so without the lock
    try {
      station.restart();
      const Lock lock(shared_.mutex);
      return stations_.note_idle(station);
    } catch (const std::exception&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const Lock lock(shared_.mutex);
    if (shared_.stop) return;
  }
}

void DecodeLoop::expire() {
  const Lock lock(shared_.mutex);
  jobs_.forget_expired(Job::Clock::now());
}

void DecodeLoop::release() {
  std::vector<StationPtr> done;  // freed without the lock: it may take a while
  const Lock lock(shared_.mutex);
  done = stations_.release([this](const Station& station) { return jobs_.open_jobs(station) > 0; });
}

// The last pass: a new engine may be missing at the runtime's end.
void DecodeLoop::lend() {
  Lock lock(shared_.mutex);
  while (idle_work_.wanted() && !shared_.stop) {
    if (stations_.has_changes()) return;  // the draft that was loaded before: installed first
    const StationPtr station = stations_.current();
    if (!station) {
      idle_work_.done(models_.no_target());
      continue;
    }
    if (jobs_.runs_any(*station)) return;
    const IdleWork::Work& work = idle_work_.next();
    lock.unlock();
    Status status = lend(*station, work);
    lock.lock();
    idle_work_.done(std::move(status));
  }
}

// Without the lock. Nothing runs on the station.
Status DecodeLoop::lend(Station& station, const IdleWork::Work& work) {
  Status status;
  try {
    station.engine().forget_idle();
    work(station.target()->model(), station.engine());
    station.engine().forget_idle();
    const Lock lock(shared_.mutex);
    stations_.note_idle(station);
  } catch (const std::bad_alloc&) {
    status = resource_exhausted("out of memory");
  } catch (const std::exception& e) {
    status = internal_error(e.what());
  }
  if (!status.ok()) restart(station);
  const Status health = station.target()->model().health();
  if (health.ok()) return status;
  const Lock lock(shared_.mutex);
  models_.target_lost(station, health);
  return health;
}

}  // namespace outrider
