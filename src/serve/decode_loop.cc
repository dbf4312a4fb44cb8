#include "serve/decode_loop.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/caught.h"
#include "serve/drafter_choice.h"

namespace outrider {

DecodeLoop::DecodeLoop(RuntimeParts& parts, StationPtr station)
    : parts_(parts), station_(std::move(station)), thread_([this] {
        loop();
        over_.store(true);
      }) {}

void DecodeLoop::loop() {
  while (wait_for_work()) {
    try {
      install();
      admit();
      step();
      lend();
    } catch (const std::exception&) {  // out of memory between two steps: nothing is half done
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (release()) return;
  }
  end_running();
}

// At the runtime's end, when all that run have been cancelled: one step more gives their results
// what they came to. What it does not end, Jobs::end_everything() does.
void DecodeLoop::end_running() {
  {
    const Lock lock(parts_.shared.mutex);
    if (!parts_.jobs.runs_any(*station_)) return;  // the engine may be missing then: restart()
  }
  try {
    step();
  } catch (const std::exception&) {  // out of memory
  }
}

// Until there is work for an iteration. False: the runtime is at its end.
bool DecodeLoop::wait_for_work() {
  Lock lock(parts_.shared.mutex);
  parts_.shared.decode_work.wait(lock, [this] {
    return parts_.shared.stop || !is_current() || parts_.stations.has_changes(*station_) ||
           parts_.idle_work.wanted() || parts_.jobs.open_jobs(*station_) > 0;
  });
  return !parts_.shared.stop;
}

// True: nobody needs the station any more, and it is gone. Needs no memory.
bool DecodeLoop::release() {
  StationPtr station;
  std::list<StationChange> changes;  // both are freed without the lock: it may take a while
  const Lock lock(parts_.shared.mutex);
  if (is_current() || parts_.jobs.open_jobs(*station_) > 0) return false;
  // Clients with work for an idle target are told first.
  if (parts_.idle_work.wanted() && !parts_.stations.current()) return false;
  changes = parts_.stations.release(*station_);
  station = std::move(station_);
  return true;
}

void DecodeLoop::install() {
  while (true) {
    std::optional<StationChange> change;
    {
      const Lock lock(parts_.shared.mutex);
      change = parts_.stations.take_change(*station_);
    }
    if (!change) return;
    if (std::holds_alternative<std::unique_ptr<Draft>>(change->what)) {
      install_draft(*std::move(change));
    } else if (std::holds_alternative<OpenedDrafterFile>(change->what)) {
      add_file(*change);
    } else {
      station_->remove_file(std::get<DrafterFile>(change->what), std::move(change->reason));
    }
  }
}

void DecodeLoop::install_draft(StationChange change) {
  Status status;
  try {
    status = station_->set_draft(std::move(std::get<std::unique_ptr<Draft>>(change.what)),
                                 change.reason);
  } catch (const std::exception& error) {
    status = caught(error);
    (void)station_->set_draft(nullptr, status.message());
  }
  const Lock lock(parts_.shared.mutex);
  if (!is_current()) return;
  parts_.drafters.note(*station_);
  if (!status.ok()) parts_.models.draft_not_installed(change.load, std::move(status));
}

void DecodeLoop::add_file(const StationChange& change) {
  const OpenedDrafterFile& opened = std::get<OpenedDrafterFile>(change.what);
  try {
    station_->add_file(opened);
  } catch (const std::exception& error) {
    const Lock lock(parts_.shared.mutex);
    if (!is_current()) return;
    parts_.files.not_installed(opened, caught(error));
  }
}

// It is ours, there is a sequence for it, and its target is not about to be lent.
bool DecodeLoop::may_admit(const Job& job) const {
  if (job.station != station_ || station_->engine().idle().entries().empty()) return false;
  return !parts_.idle_work.wanted() || !is_current();
}

void DecodeLoop::admit() {
  Lock lock(parts_.shared.mutex);
  for (std::size_t i = 0; i < parts_.jobs.waiting().size();) {
    const Job& waiting = *parts_.jobs.waiting()[i];
    if (!may_admit(waiting)) {
      ++i;
      continue;
    }
    DrafterChoice choice = choose_drafters(waiting, {.station = *station_,
                                                     .is_current = is_current(),
                                                     .draft = parts_.models.task(ModelRole::kDraft),
                                                     .files = parts_.files});
    const JobPtr job = parts_.jobs.admit(i);
    Request request = std::move(job->request);
    request.drafters = std::move(choice.drafters);
    if (request.speculation_off_reason.empty()) {
      request.speculation_off_reason = std::move(choice.missing);
    }
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
    const Result<RequestId> added = station_->engine().add(std::move(request));
    status = added.status();
    if (added.ok()) id = *added;
  } catch (const std::exception& error) {
    status = caught(error);
  }
  lock.lock();
  if (!id) return parts_.jobs.fail(job, std::move(status));
  job.running = id;
  if (job.ended_by != EndedBy::kItself) station_->engine().cancel(*id);
  parts_.stations.note_idle(*station_);
}

void DecodeLoop::step() {
  if (!station_->engine().busy()) return;
  try {
    publish(station_->engine().step());
    note_progress();
    station_->after_step();
  } catch (const std::exception& error) {
    restart(caught(error));
  }
  (void)note_loss();
}

// Where the target's process is gone: new requests are refused from now on. Tried until there is
// memory for the reason, since nobody else would find out: the system ends a process when memory is
// short. Returns the reason; ok: it is there. Never throws.
Status DecodeLoop::note_loss() {
  while (true) {
    try {
      Status health = station_->target()->model().health();
      if (health.ok()) return health;
      const Lock lock(parts_.shared.mutex);
      parts_.models.target_lost(*station_, health);
      return health;
    } catch (const std::exception&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const Lock lock(parts_.shared.mutex);
    if (parts_.shared.stop) return resource_exhausted("out of memory");
  }
}

void DecodeLoop::publish(std::vector<Update> updates) {
  if (std::any_of(updates.begin(), updates.end(), [](const Update& u) { return u.finished; })) {
    const Lock lock(parts_.shared.mutex);
    // First: whoever sees a result may start the next request at once.
    parts_.stations.note_idle(*station_);
  }
  for (Update& update : updates) publish(std::move(update));
}

void DecodeLoop::publish(Update update) {
  std::vector<SaidToken> tokens;
  for (std::size_t i = 0; i < update.pieces.size(); ++i) {
    Piece& piece = update.pieces[i];
    SaidToken& said = tokens.emplace_back();
    said.id = piece.id;
    said.text = std::move(piece.text);
    said.by = station_->engine().name_of(piece.by);
    said.cut = piece.cut;
    if (i < update.logprobs.size()) said.logprob = std::move(update.logprobs[i]);
  }
  std::optional<Completion> completion;
  if (update.finished) completion = std::move(*station_->engine().take(update.id));
  JobPtr job;
  {
    const Lock lock(parts_.shared.mutex);
    job = parts_.jobs.find_running(*station_, update.id);
  }
  if (job == nullptr) return;
  std::optional<Remembered> remembered;
  if (completion) remembered = remember(*job, *completion);
  const Lock lock(parts_.shared.mutex);
  job->guesses = update.guesses;
  if (!tokens.empty()) parts_.jobs.give_out(*job, std::move(tokens));
  if (!completion) return;
  if (remembered) {
    // Whoever sees the result sees what is remembered, too.
    if (is_current()) parts_.drafters.note(*station_);
    job->result->remembered = std::move(remembered);
  }
  job->result->shifted = completion->shifts > 0;
  job->result->completion = std::move(*completion);
  job->result->prompt.n_cached = job->result->completion.cached_tokens;
  parts_.jobs.finish(*job);
}

// All that was said: its last tokens too, though a stop string cuts off what they say, as a later
// text is likely to end like this one. A text that was cancelled is remembered as far as it went:
// editors cancel what they ask for again. Without the lock.
std::optional<Remembered> DecodeLoop::remember(const Job& job, const Completion& completion) const {
  const std::optional<Remembered>& asked = job.result->remembered;
  if (!asked || !station_->remembers() || completion.finish == FinishReason::kError)
    return std::nullopt;
  return station_->remember(asked->name_space, completion.tokens);
}

void DecodeLoop::note_progress() {
  const Lock lock(parts_.shared.mutex);
  if (is_current()) parts_.drafters.note(*station_);
  for (const JobPtr& job : parts_.jobs.running()) {
    if (job->station != station_ || !job->running) continue;
    job->prompt_progress = station_->engine().prompt_progress(*job->running);
  }
}

// An exception out of a step leaves the engine in no known state: its requests end, and it begins
// anew. Needs no memory but the new engine's.
void DecodeLoop::restart(const Status& why) {
  {
    const Lock lock(parts_.shared.mutex);
    parts_.jobs.fail_running(*station_, why);
  }
  while (true) {  // nobody has anything on it now, so without the lock
    try {
      station_->restart();
      const Lock lock(parts_.shared.mutex);
      return parts_.stations.note_idle(*station_);
    } catch (const std::exception&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const Lock lock(parts_.shared.mutex);
    if (parts_.shared.stop) return;
  }
}

// The last phase: a new engine may be missing at the runtime's end.
void DecodeLoop::lend() {
  Lock lock(parts_.shared.mutex);
  while (parts_.idle_work.wanted() && !parts_.shared.stop) {
    if (!parts_.stations.current()) {  // whichever thread finds that
      // Before one is taken: it may throw.
      Status why = parts_.models.no_target();
      parts_.idle_work.done(parts_.idle_work.take(), std::move(why));
      continue;
    }
    if (!is_current()) return;
    // The draft that was loaded before: installed first.
    if (parts_.stations.has_changes(*station_) || parts_.jobs.runs_any(*station_)) return;
    IdleWork::Entry& entry = parts_.idle_work.take();
    lock.unlock();
    Status status = lend(*entry.work);
    lock.lock();
    parts_.idle_work.done(entry, std::move(status));
  }
}

// Without the lock. Nothing runs on the station. Never throws: its client waits for the outcome.
Status DecodeLoop::lend(const IdleWork::Work& work) {
  Status status;
  try {
    station_->engine().forget_idle();
    work(station_->target()->model(), station_->engine());
    station_->engine().forget_idle();
    const Lock lock(parts_.shared.mutex);
    parts_.stations.note_idle(*station_);
  } catch (const std::exception& error) {
    status = caught(error);
  }
  if (!status.ok()) restart(status);
  Status lost = note_loss();
  if (!lost.ok()) return lost;
  return status;
}

}  // namespace outrider
