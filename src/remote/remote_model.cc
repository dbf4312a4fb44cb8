#include "remote/remote_model.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

namespace outrider {
namespace {

// How often the flag of a waiting caller is looked at. A step takes longer than that on any model
// for which a process of its own matters.
constexpr int kLookMs = 2;

constexpr int kEndPatienceMs = 10'000;   // for freeing a model
constexpr int kDeathPatienceMs = 2'000;  // between the channel's end and the process's
constexpr std::chrono::seconds kHelloPatience{60};

// No sane model has more, and the memory is only used where rows are written.
constexpr std::uint64_t kMostFloats = std::uint64_t{1} << 36;

bool raised(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

bool is_kind(const Message& message, MessageKind kind) {
  return message.kind == static_cast<std::uint32_t>(kind);
}

Status no_sense() { return data_loss("it sent a message that makes no sense"); }

bool sensible(const Capabilities& c) {
  return c.n_vocab > 0 && c.n_ctx > 0 && c.n_batch > 0 && c.n_sequences > 0 &&
         c.n_sequences <= 4096 && c.max_width > 0 && c.max_leaves > 0 &&
         most_floats(c) <= kMostFloats;
}

}  // namespace

std::chrono::milliseconds stop_patience_on_workers(std::chrono::milliseconds least,
                                                   std::chrono::milliseconds longest,
                                                   std::chrono::milliseconds most) {
  const std::chrono::milliseconds thrice = 3 * longest;
  return std::max(least, most.count() > 0 ? std::min(thrice, most) : thrice);
}

// What a waiting parent does every few milliseconds: passes on the caller's wish to stop, and gives
// up on a child that does not follow it, or that says nothing for too long. A child looks at its
// flag after each operation of ggml on this machine. ggml's RPC backend never does, so one that
// waits for a worker, a sound and slow one too, sees the flag only when the worker has answered.
// Time in which this process was stopped is no time of the child's.
class RemoteModel::Patience {
 public:
  // `most`: of a child that was told to stop. `silence`: of any; 0: for ever.
  Patience(const std::atomic<bool>* stop, std::atomic<bool>& told, std::chrono::milliseconds most,
           std::chrono::milliseconds silence, const RunningTime::Now& now)
      : stop_(stop), told_(told), most_(most), silence_(silence), time_(now) {}

  bool wait() {
    const RunningTime::Duration now = time_.look();
    if (silence_.count() > 0 && now - heard_ >= silence_) {
      silent_ = true;
      return false;
    }
    if (!raised(stop_)) return true;
    if (!began_) {
      began_ = true;
      since_ = now;
      told_.store(true, std::memory_order_relaxed);
    }
    return now - since_ < most_;
  }
  void heard() { heard_ = time_.look(); }
  RunningTime::Duration waited() { return time_.look(); }
  // Why wait() was false.
  Status why() const {
    if (!silent_) return data_loss("it did not stop when it was told to");
    return data_loss("it said nothing for " + std::to_string(silence_.count()) +
                     " ms: a worker may have stopped answering (worker_timeout_s)");
  }

 private:
  const std::atomic<bool>* stop_;
  std::atomic<bool>& told_;
  std::chrono::milliseconds most_;
  std::chrono::milliseconds silence_;
  RunningTime time_;
  RunningTime::Duration heard_{0};
  bool silent_ = false;
  bool began_ = false;
  RunningTime::Duration since_{0};
};

RemoteModel::RemoteModel(std::string path, const LoadHooks& hooks, FileDescriptor channel,
                         SharedMemory memory)
    : path_(std::move(path)),
      log_(hooks.log),
      channel_(std::move(channel)),
      memory_(std::move(memory)) {}

Result<std::unique_ptr<RemoteModel>> RemoteModel::open(const std::string& program,
                                                       const OpenRequest& request,
                                                       const LoadHooks& hooks,
                                                       const std::function<void(double)>& probing,
                                                       FindCause find_cause) {
  return open(
      [&program](ChildEnds ends) {
        return ChildProcess::start(program, {"outrider", "model-host", "3", "4"},
                                   {ends.channel.get(), ends.memory.get()});
      },
      request, hooks, probing, std::move(find_cause));
}

Result<std::unique_ptr<RemoteModel>> RemoteModel::open(const StartHost& start,
                                                       const OpenRequest& request,
                                                       const LoadHooks& hooks,
                                                       const std::function<void(double)>& probing,
                                                       FindCause find_cause) {
  Result<std::pair<FileDescriptor, FileDescriptor>> ends = Channel::make_pair();
  if (!ends.ok()) return ends.status();
  Result<SharedMemory> memory = SharedMemory::create();
  if (!memory.ok()) return memory.status();
  Result<FileDescriptor> shared = memory->duplicate();
  if (!shared.ok()) return shared.status();
  std::unique_ptr<RemoteModel> model(
      new RemoteModel(request.model.path, hooks, std::move(ends->first), std::move(*memory)));
  model->find_cause_ = std::move(find_cause);
  Result<std::unique_ptr<ChildProcess>> child =
      start({.channel = std::move(ends->second), .memory = std::move(*shared)});
  if (!child.ok()) return child.status();
  model->child_ = std::move(*child);
  if (!request.model.workers.empty()) {
    model->on_workers_ = true;
    model->set_silence_patience(std::chrono::seconds(request.model.worker_timeout_s));
  }
  const Status loaded = model->load(request, hooks, probing);
  if (loaded.ok()) return model;
  if (raised(hooks.cancel)) return cancelled("opening '" + request.model.path + "' was cancelled");
  return loaded;
}

Status RemoteModel::load(const OpenRequest& request, const LoadHooks& hooks,
                         const std::function<void(double)>& probing) {
  OUTRIDER_RETURN_IF_ERROR(expect_hello(hooks.cancel));
  body_.clear();
  put(body_, request);
  OUTRIDER_RETURN_IF_ERROR(send(MessageKind::kOpen, body_));
  const Result<Message> opened = next(hooks.cancel, probing, &hooks);
  if (!opened.ok()) return opened.status();
  OUTRIDER_RETURN_IF_ERROR(take_report(*opened));
  OUTRIDER_RETURN_IF_ERROR(make_rows());
  memory_.flag().store(false, std::memory_order_relaxed);
  return raised(hooks.cancel) ? cancelled("cancelled") : Status();
}

Status RemoteModel::expect_hello(const std::atomic<bool>* cancel) {
  RunningTime time(clock_);
  const Result<Message> hello =
      channel_.receive([&] { return !raised(cancel) && time.look() < kHelloPatience; }, kLookMs);
  if (hello.status().code() == StatusCode::kCancelled) return lose(data_loss("it said nothing"));
  if (!hello.ok()) return lose(hello.status());
  WireReader reader(hello->body);
  const std::uint32_t version = reader.number<std::uint32_t>();
  if (!is_kind(*hello, MessageKind::kHello) || reader.failed()) return lose(no_sense());
  greeted_ = true;
  if (version == kProtocolVersion) return Status();
  return unsupported(
      "the program that runs models in a process of their own is of another version "
      "of Outrider (its protocol is " +
      std::to_string(version) + ", not " + std::to_string(kProtocolVersion) +
      "); install the one that came with this library, or give its path in "
      "OUTRIDER_HOST_PROGRAM");
}

Status RemoteModel::take_report(const Message& message) {
  WireReader reader(message.body);
  const Status status = read_status(reader);
  if (!is_kind(message, MessageKind::kOpened) || reader.failed()) return lose(no_sense());
  if (!status.ok()) return status;
  report_ = read_report(reader);
  if (!reader.finished() || !sensible(report_.capabilities)) return lose(no_sense());
  states_.resize(static_cast<std::size_t>(report_.capabilities.n_sequences));
  return Status();
}

Status RemoteModel::make_rows() {
  const std::uint64_t n_floats = most_floats(report_.capabilities);
  OUTRIDER_RETURN_IF_ERROR(memory_.make_rows(n_floats).with_context("'" + path_ + "'"));
  body_.clear();
  body_.number(n_floats);
  return call(MessageKind::kMap, body_);
}

RemoteModel::~RemoteModel() { end_child(); }

void RemoteModel::end_child() {
  if (!lost_.ok()) return;
  static_cast<void>(channel_.send(static_cast<std::uint32_t>(MessageKind::kBye), ""));
  if (child_ == nullptr) return;
  // One with workers may wait for them, and holds nothing that it must put in order.
  const bool ended =
      child_->wait(silence_patience_.count() > 0 ? kDeathPatienceMs : kEndPatienceMs);
  if (!ended) child_->kill();
  if (ended && child_->ended_well()) return;
  if (log_) {
    log_(LogLevel::kWarning, "'" + path_ + "': its process " +
                                 (ended ? child_->ending() : "did not end and was killed") + ": " +
                                 child_->last_lines());
  }
}

// The child is gone, or as good as gone (kDataLoss: it is there, but of no use): what happened, for
// every call from now on.
Status RemoteModel::lose(const Status& how) {
  if (!lost_.ok()) return lost_;
  const bool useless = how.code() == StatusCode::kDataLoss;
  std::string what = "'" + path_ + "' ran in a process of its own, which ";
  if (!greeted_) what = "the program that was to run '" + path_ + "' in a process of its own ";
  std::string words;
  if (child_ == nullptr) {
    what += useless ? "was given up: " + how.message() : "is gone";
  } else {
    const bool ended = !useless && child_->wait(kDeathPatienceMs);
    if (!ended) child_->kill();
    what += ended ? child_->ending() : "was ended: " + how.message();
    words = child_->last_lines();
  }
  if (words.empty()) words = last_error_;
  if (!words.empty()) what += ": " + words;
  // One that has not greeted has not come to what it could die of.
  const std::string cause = greeted_ && find_cause_ ? find_cause_() : "";
  lost_ = internal_error(what + (cause.empty() ? "" : "; " + cause));
  for (SequenceState& state : states_) state = SequenceState();
  return lost_;
}

Status RemoteModel::send(MessageKind kind, const WireWriter& body) {
  if (!lost_.ok()) return lost_;
  const Status sent = channel_.send(static_cast<std::uint32_t>(kind), body.bytes(), n_calls_);
  return sent.code() == StatusCode::kInternal ? lose(sent) : sent;
}

void RemoteModel::pass_on(const Message& message, const std::function<void(double)>& probing,
                          const LoadHooks* hooks) {
  WireReader reader(message.body);
  if (is_kind(message, MessageKind::kLog)) {
    const LogLevel level = reader.choice(LogLevel::kError);
    const std::string line = reader.text();
    if (level == LogLevel::kError) last_error_ = line;
    if (log_ && !reader.failed()) log_(level, line);
    return;
  }
  const LoadPhase phase = reader.choice(LoadPhase::kProbing);
  const double fraction = reader.number<double>();
  if (reader.failed()) return;
  if (phase == LoadPhase::kProbing && probing) probing(fraction);
  if (phase == LoadPhase::kLoading && hooks != nullptr && hooks->progress) {
    hooks->progress(fraction);
  }
}

std::chrono::milliseconds RemoteModel::stop_patience() const {
  if (!on_workers_) return stop_patience_;
  return stop_patience_on_workers(stop_patience_, longest_call_, silence_patience_);
}

// The next message that is neither a log line nor progress, nor the answer to an earlier call.
Result<Message> RemoteModel::next(const std::atomic<bool>* stop,
                                  const std::function<void(double)>& probing,
                                  const LoadHooks* hooks) {
  Patience patience(stop, memory_.flag(), stop_patience(), silence_patience_, clock_);
  std::function<bool()> wait;
  if (stop != nullptr || on_workers_ || silence_patience_.count() > 0) {  // else for ever
    wait = [&patience] { return patience.wait(); };
  }
  while (true) {
    patience.wait();  // also while one line comes after the other
    Result<Message> message = channel_.receive(wait, kLookMs);
    if (message.status().code() == StatusCode::kCancelled) {
      return lose(patience.why());
    }
    if (!message.ok()) return lose(message.status());
    patience.heard();
    const bool aside =
        is_kind(*message, MessageKind::kLog) || is_kind(*message, MessageKind::kProgress);
    // As a difference: the numbers begin anew some day.
    const std::int32_t since = static_cast<std::int32_t>(n_calls_ - message->call);
    if (!aside && since > 0) continue;  // of a call that an exception ended
    if (!aside) {
      last_wait_ = std::chrono::duration_cast<std::chrono::milliseconds>(patience.waited());
      return message;
    }
    pass_on(*message, probing, hooks);
  }
}

// One call: there and back. The status is the child's.
Status RemoteModel::call(MessageKind kind, const WireWriter& body) {
  memory_.flag().store(raised(interrupt_), std::memory_order_relaxed);
  ++n_calls_;  // also of what cannot be sent: a number is never used again
  OUTRIDER_RETURN_IF_ERROR(send(kind, body));
  const Result<Message> answer = next(interrupt_, {}, nullptr);
  if (!answer.ok()) return answer.status();
  longest_call_ = std::max(longest_call_, last_wait_);
  WireReader reader(answer->body);
  Status status = read_status(reader);
  std::vector<SequenceState> states = read_states(reader);
  const bool good = is_kind(*answer, MessageKind::kDone) && answer->call == n_calls_ &&
                    reader.finished() && states.size() == states_.size();
  if (!good) return lose(no_sense());
  states_ = std::move(states);
  return status;
}

Status RemoteModel::evaluate(std::span<const EvalItem> items) {
  body_.clear();
  body_.number<std::uint64_t>(items.size());
  evaluated_.clear();
  std::size_t n_rows = 0;
  for (const EvalItem& item : items) {
    put(body_, item);
    const NodeId end = item.tree == nullptr ? 0 : item.tree->size();
    evaluated_.push_back({.first_new = item.first_new, .end = end, .first_row = n_rows});
    n_rows += static_cast<std::size_t>(end - item.first_new);
  }
  return call(MessageKind::kEvaluate, body_);
}

std::span<const float> RemoteModel::logits(std::size_t item, NodeId node) const {
  assert(item < evaluated_.size());
  const Evaluated& evaluated = evaluated_[item];
  assert(node >= evaluated.first_new && node < evaluated.end);
  const std::size_t n_vocab = static_cast<std::size_t>(report_.capabilities.n_vocab);
  const std::size_t row =
      evaluated.first_row + static_cast<std::size_t>(node - evaluated.first_new);
  return {memory_.rows() + row * n_vocab, n_vocab};
}

Status RemoteModel::commit(SeqId seq, std::span<const NodeId> path) {
  body_.clear();
  body_.number(seq);
  body_.numbers<NodeId>(path);
  return call(MessageKind::kCommit, body_);
}

Status RemoteModel::truncate(SeqId seq, Pos length) {
  body_.clear();
  body_.number(seq);
  body_.number(length);
  return call(MessageKind::kTruncate, body_);
}

Status RemoteModel::share(SeqId from, SeqId to, Pos length) {
  body_.clear();
  body_.number(from);
  body_.number(to);
  body_.number(length);
  return call(MessageKind::kShare, body_);
}

}  // namespace outrider
