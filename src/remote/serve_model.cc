#include "remote/serve_model.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "remote/channel.h"
#include "remote/shared_memory.h"

namespace outrider {
namespace {

Status broken(const char* what) {
  return internal_error(std::string("the parent's message '") + what + "' makes no sense");
}

class Host {
 public:
  Host(FileDescriptor channel, SharedMemory memory)
      : channel_(std::move(channel)), memory_(std::move(memory)) {}

  Status serve(const OpenHosted& open);

 private:
  Status send(MessageKind kind, const WireWriter& body) {
    return channel_.send(static_cast<std::uint32_t>(kind), body.bytes());
  }
  Status answer_call(const WireWriter& body) {
    return channel_.send(static_cast<std::uint32_t>(MessageKind::kDone), body.bytes(), call_);
  }
  Status say_hello();
  Status open(const OpenHosted& open);
  Status map_rows(WireReader& body);
  Status answer(const Message& message, bool* over);
  Status evaluate(WireReader& body);
  Status run(std::span<const EvalItem> items);
  Status commit(WireReader& body);
  Status truncate(WireReader& body);
  Status share(WireReader& body);
  Status done(const Status& status);
  bool is_sequence(SeqId seq) const { return seq >= 0 && seq < model_->capabilities().n_sequences; }
  LoadHooks hooks();

  Channel channel_;
  SharedMemory memory_;
  std::unique_ptr<LanguageModel> model_;
  std::uint32_t call_ = 0;  // that is being answered
};

Status Host::say_hello() {
  WireWriter hello;
  hello.number(kProtocolVersion);
  return send(MessageKind::kHello, hello);
}

// A line that cannot be sent is lost: the parent is gone, which the next message finds out.
LoadHooks Host::hooks() {
  return {.progress =
              [this](double fraction) {
                WireWriter body;
                body.number(static_cast<std::uint32_t>(LoadPhase::kLoading));
                body.number(fraction);
                static_cast<void>(send(MessageKind::kProgress, body));
              },
          .cancel = &memory_.flag(),
          .log =
              [this](LogLevel level, std::string_view line) {
                constexpr std::size_t kLongest = 4096;
                WireWriter body;
                body.number(static_cast<std::uint32_t>(level));
                body.text(line.substr(0, kLongest));
                static_cast<void>(send(MessageKind::kLog, body));
              }};
}

Status Host::open(const OpenHosted& open) {
  const Result<Message> message = channel_.receive({}, 0);
  if (!message.ok()) return message.status();
  WireReader reader(message->body);
  const OpenRequest request = read_open_request(reader);
  if (message->kind != static_cast<std::uint32_t>(MessageKind::kOpen) || !reader.finished()) {
    return broken("open");
  }
  Result<HostedModel> hosted = open(request, hooks(), [this](double fraction) {
    WireWriter body;
    body.number(static_cast<std::uint32_t>(LoadPhase::kProbing));
    body.number(fraction);
    static_cast<void>(send(MessageKind::kProgress, body));
  });
  WireWriter body;
  put(body, hosted.status());
  if (hosted.ok()) {
    model_ = std::move(hosted->model);
    model_->set_interrupt(&memory_.flag());
    hosted->report.capabilities = model_->capabilities();
    put(body, hosted->report);
  }
  return send(MessageKind::kOpened, body);
}

Status Host::done(const Status& status) {
  WireWriter body;
  put(body, status);
  std::vector<SequenceState> states;
  for (SeqId seq = 0; seq < model_->capabilities().n_sequences; ++seq) {
    states.push_back({.length = model_->length(seq), .room = model_->room(seq)});
  }
  put(body, std::span<const SequenceState>(states));
  return answer_call(body);
}

Status Host::map_rows(WireReader& body) {
  const std::uint64_t n_floats = body.number<std::uint64_t>();
  if (!body.finished() || n_floats < most_floats(model_->capabilities())) return broken("map");
  return done(memory_.map_rows(n_floats));
}

// The model holds its caller to its REQUIRES by asserts, so what comes over the channel is checked
// for shape here and for sense there.
Status Host::evaluate(WireReader& body) {
  std::vector<OwnedItem> owned;
  const std::uint64_t n = body.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < n && !body.failed(); ++i) {
    owned.push_back(read_item(body));
    if (!is_sequence(owned.back().seq)) return broken("evaluate");
  }
  if (!body.finished() || memory_.rows() == nullptr) return broken("evaluate");
  std::vector<EvalItem> items;
  for (const OwnedItem& item : owned) items.push_back(item.view());
  return done(run(items));
}

Status Host::run(std::span<const EvalItem> items) {
  OUTRIDER_RETURN_IF_ERROR(model_->evaluate(items));
  const std::size_t n_vocab = static_cast<std::size_t>(model_->capabilities().n_vocab);
  const std::size_t n_rows = memory_.n_floats() / n_vocab;
  std::size_t row = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const NodeId end = items[i].tree == nullptr ? 0 : items[i].tree->size();
    for (NodeId node = items[i].first_new; node < end; ++node, ++row) {
      if (row == n_rows) return internal_error("an evaluation has more rows than were announced");
      const std::span<const float> logits = model_->logits(i, node);
      std::memcpy(memory_.rows() + row * n_vocab, logits.data(), n_vocab * sizeof(float));
    }
  }
  return Status();
}

Status Host::commit(WireReader& body) {
  const SeqId seq = body.number<SeqId>();
  const std::vector<NodeId> path = body.numbers<NodeId>();
  if (!body.finished() || !is_sequence(seq)) return broken("commit");
  return done(model_->commit(seq, path));
}

Status Host::truncate(WireReader& body) {
  const SeqId seq = body.number<SeqId>();
  const Pos length = body.number<Pos>();
  const bool sensible = body.finished() && is_sequence(seq) && length >= 0;
  if (!sensible || length > model_->length(seq)) return broken("truncate");
  return done(model_->truncate(seq, length));
}

Status Host::share(WireReader& body) {
  const SeqId from = body.number<SeqId>();
  const SeqId to = body.number<SeqId>();
  const Pos length = body.number<Pos>();
  const bool sensible =
      body.finished() && is_sequence(from) && is_sequence(to) && from != to && length >= 0;
  if (!sensible || length > model_->length(from)) return broken("share");
  return done(model_->share(from, to, length));
}

Status Host::answer(const Message& message, bool* over) {
  call_ = message.call;
  WireReader body(message.body);
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kMap:
      return map_rows(body);
    case MessageKind::kEvaluate:
      return evaluate(body);
    case MessageKind::kCommit:
      return commit(body);
    case MessageKind::kTruncate:
      return truncate(body);
    case MessageKind::kShare:
      return share(body);
    case MessageKind::kBye:
      *over = true;
      return Status();
    default:
      return broken("unknown");
  }
}

Status Host::serve(const OpenHosted& open_model) {
  OUTRIDER_RETURN_IF_ERROR(say_hello());
  OUTRIDER_RETURN_IF_ERROR(open(open_model));
  if (model_ == nullptr) return Status();  // the parent has the reason
  bool over = false;
  while (!over) {
    const Result<Message> message = channel_.receive({}, 0);
    if (!message.ok()) return message.status();
    OUTRIDER_RETURN_IF_ERROR(answer(*message, &over));
  }
  return Status();
}

}  // namespace

Status serve_model(FileDescriptor channel, FileDescriptor memory, const OpenHosted& open) {
  Result<SharedMemory> shared = SharedMemory::open(std::move(memory));
  if (!shared.ok()) return shared.status();
  return Host(std::move(channel), std::move(*shared)).serve(open);
}

}  // namespace outrider
