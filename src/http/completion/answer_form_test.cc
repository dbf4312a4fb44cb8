// Which of a form's functions are called, and how often: for answers that are streamed and for
// those that are sent at once.
#include "http/completion/answer_form.h"

#include "http/completion/completion_task.h"
#include "http/endpoint/server_state.h"
#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

// What a form was told. Shared: the form ends with its reply.
struct Told {
  std::vector<std::string> calls;     // of each a letter of its function
  std::vector<std::string> texts;     // [answers] by delta() or note()
  std::vector<std::string> finished;  // [answers] of whole() or finish()
  std::size_t n(const std::string& call) const {
    return static_cast<std::size_t>(std::count(calls.begin(), calls.end(), call));
  }
};

class ToldForm : public AnswerForm {
 public:
  explicit ToldForm(std::shared_ptr<Told> told) : told_(std::move(told)) {}

  void begin(std::string& /*out*/) override { told_->calls.emplace_back("begin"); }
  void progress(std::size_t /*i*/, const PromptStats& /*prompt*/, double /*fraction*/,
                std::string& /*out*/) override {
    told_->calls.emplace_back("progress");
  }
  void delta(std::size_t i, const AnswerDelta& delta, std::string& /*out*/) override {
    add("delta", i, delta);
  }
  void end(std::size_t /*i*/, const Answer& /*answer*/, std::string& /*out*/) override {
    told_->calls.emplace_back("end");
  }
  void finish(const std::vector<Answer>& answers, std::string& /*out*/) override {
    finished("finish", answers);
  }
  void fail(const Status& error, std::string& /*out*/) override {
    ADD_FAILURE() << error.message();
  }
  void note(std::size_t i, const AnswerDelta& delta) override { add("note", i, delta); }
  Json whole(const std::vector<Answer>& answers) override {
    finished("whole", answers);
    return Json::object();
  }

 private:
  void add(const char* call, std::size_t i, const AnswerDelta& delta) {
    told_->calls.emplace_back(call);
    if (told_->texts.size() <= i) told_->texts.resize(i + 1);
    told_->texts[i] += delta.content;
  }
  void finished(const char* call, const std::vector<Answer>& answers) {
    told_->calls.emplace_back(call);
    for (const Answer& answer : answers) told_->finished.push_back(answer.reply().content);
  }

  std::shared_ptr<Told> told_;
};

class AnswerFormTest : public ServerTest {
 protected:
  // What a form is told of `n` answers of 12 tokens.
  Told told_of(std::int32_t n, bool stream) {
    const auto told = std::make_shared<Told>();
    ServerState state(ServerOptions(), *catalog_);
    CompletionTask task;
    task.stream = stream;
    task.set_requests({.prompt = {std::string("abc")}, .max_tokens = 12}, n);
    task.form = std::make_unique<ToldForm>(told);
    const HttpReply reply = answer_completion(state, HttpRequest(), std::move(task));
    EXPECT_EQ(reply.status, 200) << reply.body;
    if (stream) (void)streamed(reply);
    return *told;
  }
};

TEST_F(AnswerFormTest, OneThatIsSentAtOnceIsNotToldAsAStream) {
  start();
  for (const std::int32_t n : {1, 3}) {
    const Told told = told_of(n, /*stream=*/false);
    ASSERT_EQ(told.texts.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(told.texts, told.finished);
    EXPECT_EQ(told.texts[0].size(), 12U);
    EXPECT_EQ(told.n("whole"), 1U);
    EXPECT_EQ(told.n("note") + 1, told.calls.size()) << "nothing else";
  }
}

TEST_F(AnswerFormTest, OneThatIsStreamedIsToldFromItsBeginningToItsEnd) {
  start();
  for (const std::int32_t n : {1, 3}) {
    const Told told = told_of(n, /*stream=*/true);
    ASSERT_EQ(told.texts.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(told.texts, told.finished);
    EXPECT_EQ(told.calls.front(), "begin");
    EXPECT_EQ(told.n("end"), static_cast<std::size_t>(n));
    EXPECT_EQ(told.calls.back(), "finish");
    EXPECT_EQ(told.n("note") + told.n("whole"), 0U);
  }
}

}  // namespace
}  // namespace outrider::http
