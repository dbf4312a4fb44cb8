#include "http/completion/answer.h"

#include <iterator>
#include <utility>

#include "http/exchange/random_id.h"
#include "json/json.h"

namespace outrider::http {
namespace {

// Reading that takes less is done for each token, as 5 ms are a quick one's time.
constexpr double kUnnoticedMs = 0.2;
constexpr double kShareOfTime = 0.05;

// What `whole` has behind the part that was shown. A reader's texts only grow; should one ever
// change what was shown, the rest is not repeated.
std::string behind(const std::string& whole, const std::string& shown) {
  return whole.size() > shown.size() ? whole.substr(shown.size()) : std::string();
}

}  // namespace

AnswerDelta Answer::read(bool complete) {
  AnswerDelta delta;
  const Stopwatch reading(clock_);
  ChatReply now = reader_->read(text_, complete);
  now.content.insert(0, given_.content);
  now.reasoning.insert(0, given_.reasoning);
  const double took_ms = reading.elapsed_ms();
  next_read_ms_ = took_ms > kUnnoticedMs ? took_ms / kShareOfTime : 0.0;
  since_read_.restart();
  delta.content = behind(now.content, reply_.content);
  delta.reasoning = behind(now.reasoning, reply_.reasoning);
  for (std::size_t i = 0; i < now.tool_calls.size(); ++i) {
    ToolCall& call = now.tool_calls[i];
    ToolCallDelta more{.index = i};
    if (i < reply_.tool_calls.size()) {
      const ToolCall& before = reply_.tool_calls[i];
      call.id = before.id;
      more.arguments = behind(call.arguments, before.arguments);
      if (more.arguments.empty()) continue;
    } else {
      if (call.id.empty()) call.id = random_id("call_");
      more.id = call.id;
      more.name = call.name;
      more.arguments = call.arguments;
    }
    delta.tool_calls.push_back(std::move(more));
  }
  reply_ = std::move(now);
  if (!delta.reasoning.empty()) reasoning_tokens_ += n_unread_;
  n_unread_ = 0;
  return delta;
}

bool Answer::has_cut_call() const {
  if (!has_calls()) return false;
  const std::string& arguments = reply_.tool_calls.back().arguments;
  return json::object_length(arguments) == 0;
}

AnswerDelta Answer::add(std::vector<SaidToken> tokens, const Guesses& guesses) {
  AnswerDelta delta;
  std::string more;
  for (const SaidToken& token : tokens) more += token.text;
  if (reader_ == nullptr) {
    reply_.content += more;
    delta.content = std::move(more);
  } else {
    text_ += more;
    n_unread_ += static_cast<std::int64_t>(tokens.size());
    if (!more.empty() && since_read_.elapsed_ms() >= next_read_ms_) {
      delta = read(/*complete=*/false);
    }
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  unshown_.insert(unshown_.end(), std::make_move_iterator(tokens.begin()),
                  std::make_move_iterator(tokens.end()));
  if (reader_ == nullptr || !delta.silent()) delta.tokens = std::exchange(unshown_, {});
  delta.guesses = guesses;
  return delta;
}

AnswerDelta Answer::finish(std::shared_ptr<const CompletionResult> result) {
  result_ = std::move(result);
  if (reader_ == nullptr) return AnswerDelta();
  AnswerDelta delta = read(/*complete=*/true);
  delta.tokens = std::exchange(unshown_, {});
  const SpeculationStats& all = result_->completion.speculation;
  delta.guesses = {.drafted = all.drafted, .accepted = all.accepted};
  return delta;
}

}  // namespace outrider::http
