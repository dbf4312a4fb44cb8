// RemoteModel: a LanguageModel that runs in a child process.
//
// What it is for. llama.cpp ends its process when it meets what it does not expect: a damaged file
// that got through all checks, a worker that died (ggml's RPC client aborts). In a process of its
// own that is an error of the call, and nothing more.
//
// How. One message there and one back for each call (remote/protocol.h); rows of logits come
// through shared memory. The child's answer to each call carries the length and room of every
// sequence, so that asking for them costs nothing, and the call's number: the answer to one that an
// exception ended (a log line for which there was no memory) is passed over when it comes. While
// the parent waits, it looks at the interrupt flag every few milliseconds and passes it on.
//
// The end of the child, whenever it comes: the call that meets it fails with kInternal, saying how
// the child ended, what it said last and, where whoever opened it knows how to find out, what else
// is gone (its workers); so does every further one; length() and room() are 0.
// Nothing hangs: a child that does not answer although it was told to stop is killed after a while,
// and one whose workers have stopped answering after ModelOptions::worker_timeout_s. While this
// process itself is stopped (SIGSTOP), none of these times goes on (remote/running_time.h).
// Destroying the model ends the child and waits for that.
//
// Cost beside the same model in this process: wake-ups, and a copy of the rows. 0.6 ms of a step of
// 13 ms for a vocabulary of 49,152 on a busy machine.
//
// Tested by remote_model_test.cc and tests/isolated_*_test.cc.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/language_model.h"
#include "model/model_options.h"
#include "remote/channel.h"
#include "remote/child_process.h"
#include "remote/protocol.h"
#include "remote/running_time.h"
#include "remote/shared_memory.h"

namespace outrider {

// How long a child with workers that was told to stop may go on. It cannot see that while it waits
// for a worker, which may take nearly a whole call: so it gets three times the `longest` call that
// was answered, no more than `most` (0: no limit), and in any case `least`.
std::chrono::milliseconds stop_patience_on_workers(std::chrono::milliseconds least,
                                                   std::chrono::milliseconds longest,
                                                   std::chrono::milliseconds most);

class RemoteModel : public LanguageModel {
 public:
  // What the other side gets.
  struct ChildEnds {
    FileDescriptor channel;
    FileDescriptor memory;
  };
  // Begins serve_model() at the other end, and returns the process that does it; null when a thread
  // does (in tests).
  using StartHost = std::function<Result<std::unique_ptr<ChildProcess>>(ChildEnds ends)>;
  // What a child that is gone may have died of, for the error: asked once, by the call that meets
  // its end, which waits for it. Empty, or an empty text: nobody knows.
  using FindCause = std::function<std::string()>;

  // Starts `program` (remote/host_program.h) and opens the model there. `hooks` as for any loading;
  // its log also gets the child's lines later on. `probing` is told how far the probe is; may be
  // empty.
  // Errors: what the opener says; kNotFound and kInternal for the program; kUnsupported when it is
  // of another version; kInternal, naming the file, when the child dies; kCancelled.
  static Result<std::unique_ptr<RemoteModel>> open(const std::string& program,
                                                   const OpenRequest& request,
                                                   const LoadHooks& hooks,
                                                   const std::function<void(double)>& probing,
                                                   FindCause find_cause = {});

  // The same with another host.
  static Result<std::unique_ptr<RemoteModel>> open(const StartHost& start,
                                                   const OpenRequest& request,
                                                   const LoadHooks& hooks,
                                                   const std::function<void(double)>& probing,
                                                   FindCause find_cause = {});

  ~RemoteModel() override;

  const OpenReport& report() const { return report_; }

  // How long a child that was told to stop may go on before it is killed: 3 s unless set. It is the
  // least for one with workers, which gets stop_patience_on_workers().
  void set_stop_patience(std::chrono::milliseconds patience) { stop_patience_ = patience; }

  // How long the child may say nothing during a call; 0: for ever. As opened: that of
  // ModelOptions::worker_timeout_s with workers, 0 without.
  void set_silence_patience(std::chrono::milliseconds patience) { silence_patience_ = patience; }

  // Another clock for these times, for tests.
  void set_clock(RunningTime::Now clock) { clock_ = std::move(clock); }

  // Of the child, for tests; -1: there is none.
  pid_t process_id() const { return child_ ? child_->pid() : -1; }

  const Capabilities& capabilities() const override { return report_.capabilities; }
  Pos length(SeqId seq) const override { return states_[static_cast<std::size_t>(seq)].length; }
  std::int32_t room(SeqId seq) const override {
    return states_[static_cast<std::size_t>(seq)].room;
  }
  Status evaluate(std::span<const EvalItem> items) override;
  std::span<const float> logits(std::size_t item, NodeId node) const override;
  Status commit(SeqId seq, std::span<const NodeId> path) override;
  Status truncate(SeqId seq, Pos length) override;
  Status share(SeqId from, SeqId to, Pos length) override;
  Status health() const override { return lost_; }
  void set_interrupt(const std::atomic<bool>* flag) override { interrupt_ = flag; }

 private:
  // An item of the last evaluate().
  struct Evaluated {
    NodeId first_new = 0;
    NodeId end = 0;
    std::size_t first_row = 0;
  };
  class Patience;

  RemoteModel(std::string path, const LoadHooks& hooks, FileDescriptor channel,
              SharedMemory memory);

  Status load(const OpenRequest& request, const LoadHooks& hooks,
              const std::function<void(double)>& probing);
  Status expect_hello(const std::atomic<bool>* cancel);
  Status take_report(const Message& message);
  Status make_rows();
  Status call(MessageKind kind, const WireWriter& body);
  Result<Message> next(const std::atomic<bool>* stop, const std::function<void(double)>& probing,
                       const LoadHooks* hooks);
  Status send(MessageKind kind, const WireWriter& body);
  Status lose(const Status& how);
  std::chrono::milliseconds stop_patience() const;
  void pass_on(const Message& message, const std::function<void(double)>& probing,
               const LoadHooks* hooks);
  void end_child();

  std::string path_;
  LogSink log_;
  FindCause find_cause_;
  bool greeted_ = false;    // by the child
  std::string last_error_;  // the child's last line of that level
  Channel channel_;
  SharedMemory memory_;
  std::unique_ptr<ChildProcess> child_;
  OpenReport report_;
  std::vector<SequenceState> states_;  // [n_sequences]
  std::vector<Evaluated> evaluated_;
  WireWriter body_;            // kept for its memory
  std::uint32_t n_calls_ = 0;  // begun; the last one's number
  const std::atomic<bool>* interrupt_ = nullptr;
  std::chrono::milliseconds stop_patience_{3'000};
  std::chrono::milliseconds silence_patience_{0};
  bool on_workers_ = false;
  std::chrono::milliseconds last_wait_{0};     // for a message that was no log line
  std::chrono::milliseconds longest_call_{0};  // of those that were answered
  RunningTime::Now clock_ = RunningTime::Clock::now;
  Status lost_;  // not ok: the child is gone
};

}  // namespace outrider
