// AnswerForm: how one API writes answers, streamed or at once. One form serves one request, in one
// of two ways:
//
//   streamed   begin(), then of each answer progress(), delta(), end(); finish() or fail()
//   at once    of each answer note(); whole()
//
// Implementations: chat_form.h, text_form.h, ...
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "http/completion/answer.h"
#include "json/json.h"
#include "request/completion_request.h"

namespace outrider::http {

class AnswerForm {
 public:
  virtual ~AnswerForm() = default;

  // What the answers say of their model. Set before anything is written.
  void set_model(std::string name) { model_ = std::move(name); }
  const std::string& model() const { return model_; }
  // What became of the prompt of each answer. Set before anything is written.
  void set_prompts(std::vector<PromptStats> prompts) { prompts_ = std::move(prompts); }
  const std::vector<PromptStats>& prompts() const { return prompts_; }

  // A streamed answer: each appends server-sent events to `out`, if it has any to send. begin()
  // comes first and once; then, for answer `i`, progress() while its prompt is read, delta() for
  // what is new, end() with `answer` complete; finish() last, when all have ended, or fail() at any
  // time instead.
  virtual void begin(std::string& out) = 0;
  virtual void progress(std::size_t i, const PromptStats& prompt, double fraction,
                        std::string& out) {
    (void)i, (void)prompt, (void)fraction, (void)out;
  }
  virtual void delta(std::size_t i, const AnswerDelta& delta, std::string& out) = 0;
  virtual void end(std::size_t i, const Answer& answer, std::string& out) = 0;
  // Asked behind each delta() or note(): whether answer `i` may end here, because its client said
  // so. It is cancelled then, and ends with what it has.
  virtual bool enough(std::size_t i) const {
    (void)i;
    return false;
  }
  // A sign of life while there is nothing to say: a comment, which clients pass over.
  virtual void ping(std::string& out) const { out += ": ping\n\n"; }
  virtual void finish(const std::vector<Answer>& answers, std::string& out) = 0;
  virtual void fail(const Status& error, std::string& out) = 0;

  // An answer that is sent at once: what is new of answer `i`, for what whole() and enough() have
  // to know of it beside the answer.
  virtual void note(std::size_t i, const AnswerDelta& delta) { (void)i, (void)delta; }
  // All answers, complete, as one object.
  virtual json::Json whole(const std::vector<Answer>& answers) = 0;

 private:
  std::string model_;
  std::vector<PromptStats> prompts_;
};

// "data: {...}\n\n", behind "event: <name>\n" where there is one.
void append_event(const json::Json& data, std::string& out, std::string_view name = {});

}  // namespace outrider::http
