// For the tests of forms whose answers have items or blocks: an answer in the format of
// testing/simple_chat.h, said in pieces, and what the form makes of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/completion/answer_form.h"
#include "json/json.h"
#include "testing/simple_chat.h"

namespace outrider::http {

// How an answer ended.
struct DrivenEnd {
  FinishReason finish = FinishReason::kStop;
  std::string stop = {};
};

// The complete answer whose text is `pieces`, a token each; the prompt had 10 tokens, 4 of them
// cached. With `form` and `out` it is streamed to them; `form` alone is told to send it at once.
inline Answer drive(const std::vector<std::string>& pieces, const DrivenEnd& end = {},
                    AnswerForm* form = nullptr, std::string* out = nullptr) {
  const auto result = std::make_shared<CompletionResult>();
  Completion& completion = result->completion;
  completion.finish = end.finish;
  completion.stop = end.stop;
  completion.prompt_tokens = 10;
  completion.cached_tokens = 4;
  if (form != nullptr) {
    form->set_model("fake");
    form->set_prompts({{.n_ctx = 64, .n_tokens = 10, .n_tokens_asked = 10, .n_cached = 4}});
    if (out != nullptr) form->begin(*out);
  }
  const auto tell = [&](const AnswerDelta& delta) {
    if (form != nullptr && out != nullptr) form->delta(0, delta, *out);
    if (form != nullptr && out == nullptr) form->note(0, delta);
  };
  Answer answer(std::make_shared<const testing::SimpleChatReader>());
  for (const std::string& piece : pieces) {
    completion.text += piece;
    completion.tokens.push_back(1);
    std::vector<SaidToken> tokens(1);
    tokens[0].text = piece;
    tell(answer.add(std::move(tokens)));
  }
  const AnswerDelta rest = answer.finish(result);
  if (!rest.empty()) tell(rest);
  if (out != nullptr) form->end(0, answer, *out);
  return answer;
}

// The events of a whole stream. Each is named by its type.
inline std::vector<json::Json> driven_events(const std::string& stream) {
  std::vector<json::Json> list;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t end = stream.find("\n\n", at);
    const std::string event = stream.substr(at, end - at);
    at = end == std::string::npos ? stream.size() : end + 2;
    const std::size_t data = event.find("\ndata: ");
    EXPECT_TRUE(event.starts_with("event: ") && data != std::string::npos) << event;
    const json::Parsed parsed = json::parse(event.substr(data + 7));
    EXPECT_TRUE(parsed.ok()) << parsed.error << ": " << event;
    if (!parsed.ok()) return list;
    EXPECT_EQ((*parsed.value)["type"], event.substr(7, data - 7));
    list.push_back(*parsed.value);
  }
  return list;
}

inline std::vector<std::string> types_of(const std::vector<json::Json>& events) {
  std::vector<std::string> types;
  for (const json::Json& event : events) types.push_back(event["type"].get<std::string>());
  return types;
}

// Every way to say `text` in three pieces or fewer: f(pieces).
template <typename Function>
void for_each_cut(const std::string& text, Function&& f) {
  for (std::size_t a = 0; a <= text.size(); ++a) {
    for (std::size_t b = a; b <= text.size(); ++b) {
      std::vector<std::string> pieces;
      for (const std::string& piece : {text.substr(0, a), text.substr(a, b - a), text.substr(b)}) {
        if (!piece.empty()) pieces.push_back(piece);
      }
      f(pieces);
    }
  }
}

}  // namespace outrider::http
