#include "http/completion/completion_task.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "api/spelling.h"
#include "base/clock.h"
#include "base/status.h"
#include "http/endpoint/acquire.h"
#include "http/endpoint/server_state.h"
#include "http/exchange/error_reply.h"

namespace outrider::http {
namespace {

using json::Json;

// A cancelled completion ends within a step; what it came to is counted.
constexpr std::int64_t kCancelWaitMs = 2'000;

// The completions of one task while they run. Those that have not ended when it is destroyed are
// cancelled.
class RunningTask {
 public:
  RunningTask(ServerState& server, std::shared_ptr<CallRecord> record,
              std::shared_ptr<Runtime> runtime, std::unique_ptr<AnswerForm> form, bool streamed)
      : server_(server),
        record_(std::move(record)),
        runtime_(std::move(runtime)),
        form_(std::move(form)),
        streamed_(streamed) {}
  ~RunningTask() {
    try {
      cancel();
    } catch (const std::exception&) {  // no memory: what is left ends by itself, uncounted
    }
  }
  RunningTask(const RunningTask&) = delete;
  RunningTask& operator=(const RunningTask&) = delete;

  AnswerForm& form() { return *form_; }
  const std::vector<Answer>& answers() const { return answers_; }
  bool done() const { return unfinished_ == 0; }

  // `with_given`: as Answer has it.
  // What is wrong with the request is found with the first answer, before it is copied again.
  Status start(const AnswerRequests& requests, bool with_given) {
    OUTRIDER_RETURN_IF_ERROR(runtime_->check_room(requests.size()));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      // First: cancel() looks for that of each id, also where memory runs out below.
      before_ms_.push_back(record_->since_begin.elapsed_ms());
      OUTRIDER_ASSIGN_OR_RETURN(StartedCompletion started, runtime_->start(requests.of(i)));
      ids_.push_back(started.id);
      prompts_.push_back(started.prompt);
      progress_.push_back(0.0);
      answers_.emplace_back(started.reader, /*clock=*/nullptr, with_given);
      holds_.push_back(std::move(started.hold));
      ++unfinished_;
    }
    form_->set_prompts(prompts_);
    return Status();
  }

  // Waits a moment until one has something new, unless it must not, and adds the events for it to
  // `out`, where they are streamed. A failure of one is the failure of all.
  Status poll(std::string& out, bool may_wait = true) {
    std::int64_t wait_ms = may_wait ? kGoneMs : 0;
    if (may_wait && unfinished_ > 1) {
      runtime_->wait_any(unfinished(), std::exchange(wait_ms, 0));
    }
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] == kEnded) continue;
      Result<PolledCompletion> polled = runtime_->poll(ids_[i], std::exchange(wait_ms, 0));
      if (!polled.ok()) return polled.status();
      take(i, std::move(*polled), out);
      if (!failure_.ok()) return failure_;
    }
    return Status();
  }

 private:
  static constexpr CompletionId kEnded = 0;

  std::vector<CompletionId> unfinished() const {
    std::vector<CompletionId> ids;
    std::copy_if(ids_.begin(), ids_.end(), std::back_inserter(ids),
                 [](CompletionId id) { return id != kEnded; });
    return ids;
  }

  void take(std::size_t i, PolledCompletion polled, std::string& out) {
    if (polled.tokens.empty() && !polled.finished && polled.prompt_progress != progress_[i]) {
      progress_[i] = polled.prompt_progress;
      if (streamed_) form_->progress(i, prompts_[i], polled.prompt_progress, out);
    }
    if (!polled.tokens.empty()) {
      tell(i, answers_[i].add(std::move(polled.tokens), polled.guesses), out);
      if (!polled.finished && form_->enough(i)) (void)runtime_->cancel(ids_[i]);
    }
    if (!polled.finished) return;
    ids_[i] = kEnded;
    --unfinished_;
    server_.note_result(*record_, *polled.result, before_ms_[i]);
    if (!polled.result->completion.error.ok()) failure_ = polled.result->completion.error;
    const AnswerDelta rest = answers_[i].finish(std::move(polled.result));
    if (!failure_.ok()) return;
    if (!rest.empty()) tell(i, rest, out);
    if (streamed_) form_->end(i, answers_[i], out);
  }

  void tell(std::size_t i, const AnswerDelta& delta, std::string& out) {
    if (streamed_) {
      form_->delta(i, delta, out);
    } else {
      form_->note(i, delta);
    }
  }

  void cancel() {
    for (const CompletionId id : ids_) {
      if (id != kEnded) (void)runtime_->cancel(id);
    }
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      const CompletionId id = ids_[i];
      if (id == kEnded) continue;
      Result<PolledCompletion> polled = runtime_->poll(id, kCancelWaitMs);
      while (polled.ok() && !polled->finished && !polled->tokens.empty()) {
        polled = runtime_->poll(id, kCancelWaitMs);
      }
      if (polled.ok() && polled->finished) {
        server_.note_result(*record_, *polled->result, before_ms_[i]);
      }
    }
  }

  ServerState& server_;
  std::shared_ptr<CallRecord> record_;
  std::shared_ptr<Runtime> runtime_;
  std::unique_ptr<AnswerForm> form_;
  const bool streamed_;
  std::vector<CompletionId> ids_;  // kEnded: it has
  std::vector<double> before_ms_;  // from the request's begin until they were started
  // A client may take longer to read than results are kept that nobody fetches.
  std::vector<std::shared_ptr<const void>> holds_;
  std::vector<PromptStats> prompts_;
  std::vector<double> progress_;
  std::vector<Answer> answers_;
  std::size_t unfinished_ = 0;
  Status failure_;
};

HttpReply whole_answer(RunningTask& task, const HttpRequest& request) {
  std::string none;
  while (!task.done()) {
    const Status status = task.poll(none);
    if (!status.ok()) return error_reply(status);
    if (request.gone && request.gone()) return error_reply(kClientGone, "the client has gone");
  }
  return json_reply(task.form().whole(task.answers()));
}

// Of the client whose answer is streamed: HttpRequest's functions, or empty ones.
struct StreamClient {
  std::function<bool()> gone;
  std::function<bool()> ended;
};

// A stream's events, from their making until the client takes them.
class Unsent {
 public:
  // Where events are added.
  std::string& events() { return events_; }

  std::size_t size() const { return events_.size() - taken_; }
  bool empty() const { return size() == 0; }

  // Of what is there a piece, or all. False: the client takes no more.
  bool write_piece(const ReplyWriter& write) { return write_up_to(kPiece, write); }
  bool write_all(const ReplyWriter& write) { return write_up_to(size(), write); }

 private:
  static constexpr std::size_t kPiece = 16 << 10;

  bool write_up_to(std::size_t most, const ReplyWriter& write) {
    const std::string_view piece = std::string_view(events_).substr(taken_, most);
    if (!write(piece)) return false;
    taken_ += piece.size();
    if (2 * taken_ < events_.size()) return true;  // so that what is left is seldom moved
    events_.erase(0, taken_);
    taken_ = 0;
    return true;
  }

  std::string events_;
  std::size_t taken_ = 0;
};

// Returns whether it came to its end. What the client is slow to take is written in pieces, and
// what was said meanwhile is added behind each: so it is known how much waits, and a client that
// falls too far behind is given up. Written as a whole it would hold up this thread, and what is
// said until then would fill the memory.
bool stream_answer(RunningTask& task, std::int32_t ping_s, const ReplyWriter& write,
                   const StreamClient& client) {
  Unsent unsent;
  std::string& out = unsent.events();
  task.form().begin(out);
  Stopwatch silence;
  bool left = false;   // whether the last piece was not all
  bool asked = false;  // whether a client that has ended its side is there
  while (!task.done()) {
    const Status status = task.poll(out, /*may_wait=*/!left);
    if (!status.ok()) {
      task.form().fail(status, out);
      return unsent.write_all(write);
    }
    if (!task.done() && unsent.size() > kMostUnsent) return false;
    const bool silent = ping_s > 0 && silence.elapsed_ms() >= 1000.0 * ping_s;
    const bool doubtful = !asked && client.ended && client.ended();
    if (unsent.empty() && (silent || doubtful)) {
      task.form().ping(out);
      asked = doubtful;
    }
    if (!unsent.empty()) {
      if (!unsent.write_piece(write)) return false;
      silence.restart();
    }
    left = !unsent.empty();
    if (client.gone && client.gone()) return false;
  }
  task.form().finish(task.answers(), out);
  return unsent.write_all(write);
}

// Where the schema of an answer is, at the endpoints that have a form for it.
std::string place_of_schema(const json::Json& body) {
  for (const auto& [outer, inner] : {std::pair("text", "format"), {"output_config", "format"}}) {
    if (body.contains(outer) && body[outer].contains(inner)) {
      return std::string(outer) + "." + inner;
    }
  }
  return body.contains("response_format") ? "response_format" : "json_schema";
}

// A failure that was found after the body had become a completion, about the field as the body
// spells it.
Status spelled_as_sent(const Status& status, const std::string& text) {
  if (status.field().empty()) return status;
  const json::Parsed body = json::parse_sent(text);
  if (!body.ok() || !body.value->is_object()) return status;
  if (status.field() == "json_schema") return status.spelled(place_of_schema(*body.value));
  return api::spelled_as_in(status, *body.value);
}

// A client's text, which must neither end the header nor fill it.
std::string header_list(const std::vector<std::string>& texts) {
  constexpr std::size_t kMost = 512;
  std::string list;
  for (const std::string& text : texts) {
    list += list.empty() ? "" : ", ";
    for (const char c : text) list += c > ' ' && c < 0x7f && c != ',' ? c : '_';
  }
  return list.substr(0, kMost);
}

HttpReply stream_reply(std::shared_ptr<RunningTask> running, std::int32_t ping_s,
                       const HttpRequest& request) {
  return {.content_type = "text/event-stream; charset=utf-8",
          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
          .stream = [running = std::move(running), ping_s,
                     client = StreamClient{.gone = request.gone, .ended = request.ended}](
                        const ReplyWriter& write) {
            return stream_answer(*running, ping_s, write, client);
          }};
}

}  // namespace

CompletionRequest AnswerRequests::of(std::size_t answer) const {
  CompletionRequest request = shared;
  request.seed = seeds[answer];
  if (!prompts.empty()) request.prompt = prompts[answer / (size() / prompts.size())];
  return request;
}

void CompletionTask::set_requests(CompletionRequest request, std::int32_t n,
                                  std::vector<std::vector<PromptPart>> prompts) {
  constexpr std::uint64_t kMost =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  // What llama-server shows for a random one, and its clients send: -1 in 32 bits.
  constexpr std::int64_t kLlamaRandomSeed = 0xFFFFFFFF;
  if (request.seed == kLlamaRandomSeed) request.seed = -1;
  requests = {.shared = std::move(request), .prompts = std::move(prompts), .seeds = {}};
  for (std::size_t p = 0; p < std::max<std::size_t>(requests.prompts.size(), 1); ++p) {
    const std::uint64_t first = chosen_seed(requests.shared);
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(n); ++i) {
      requests.seeds.push_back(static_cast<std::int64_t>((first + i) & kMost));
    }
  }
}

Status check_prompts(std::size_t n) {
  if (n <= static_cast<std::size_t>(kMaxPrompts)) return Status();
  return refused("prompt", "holds " + std::to_string(n) + " prompts, at most " +
                               std::to_string(kMaxPrompts) + " can be");
}

Status check_answers(std::size_t prompts, std::int32_t n) {
  const std::int32_t most = kMaxPrompts / static_cast<std::int32_t>(prompts);
  if (n <= most) return Status();
  return refused("n", "is " + std::to_string(n) + ", but for " + std::to_string(prompts) +
                          " prompts it must be at most " + std::to_string(most));
}

HttpReply answer_completion(ServerState& server, const HttpRequest& request, CompletionTask task) {
  const std::string model = server.model_name(task.model);
  Result<std::shared_ptr<Runtime>> runtime = acquire_model(server, request, model);
  if (!runtime.ok()) return model_error_reply(runtime.status());
  server.note_model(*request.record, model);
  task.form->set_model(model);
  const auto running = std::make_shared<RunningTask>(server, request.record, std::move(*runtime),
                                                     std::move(task.form), task.stream);
  const Status started = running->start(task.requests, task.with_given);
  task.requests = {};  // the jobs have what they need
  if (!started.ok()) return error_reply(spelled_as_sent(started, request.body));
  HttpReply reply =
      task.stream ? stream_reply(running, task.ping_s, request) : whole_answer(*running, request);
  if (!task.ignored_tools.empty()) {
    reply.headers.emplace_back(kIgnoredToolsHeader, header_list(task.ignored_tools));
  }
  if (!task.ignored.empty()) {
    reply.headers.emplace_back(kIgnoredHeader, header_list(task.ignored));
  }
  return reply;
}

}  // namespace outrider::http
