// outrider chat: a conversation in the terminal.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/on_exit.h"
#include "base/one_line.h"
#include "serve/prompt.h"
#include "tools/answer.h"
#include "tools/chat/chat_commands.h"
#include "tools/chat/chat_reader.h"
#include "tools/chat/chat_state.h"
#include "tools/chat/line_editor.h"
#include "tools/command.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

constexpr std::size_t kMaxLineBytes = 16 << 20;

constexpr const char* kChatDetails =
    "Type a message and press Enter; /help lists the commands. Ctrl-C stops the answer, Ctrl-D "
    "ends.\n"
    "A message of several lines: end a line with \\, or put \"\"\" before and after it, or paste "
    "it.\n"
    "From a pipe each line is a message, and stdout gets the answers and nothing else; with --json "
    "each\nis a result object on a line of its own, or {\"error\":{...}} where it has no answer. "
    "Then "
    "the\nexit code is 1 if any of them failed.";

class ChatCommand : public Command {
 public:
  ChatCommand() : Command("chat", "talk with a model in the terminal", kChatDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  Status prepare() override { return read_constraint(request_); }
  ModelArguments* models() override { return &model_; }
  Result<int> run() override;

 private:
  LocalSetup setup() const;
  Status check_template(const LocalRuntime& local) const;
  void greet() const;
  int talk(ChatState& chat, ChatReader& reader, SignalWatch& signals);
  void take(ChatState& chat, const ChatInput& input);
  // What came of a message or a command.
  void note(const Status& status);

  std::optional<std::string> first_;
  std::optional<std::string> system_;
  std::optional<std::string> history_;
  bool no_history_ = false;
  ModelArguments model_;
  RequestArguments request_;
  AnswerArguments answer_{.output = output_};

  bool interactive_ = false;
  bool failed_ = false;  // a message or a command did
};

void ChatCommand::add_options(CLI::App& app) {
  OptionGroup conversation(app, "Conversation");
  conversation.add_text("-p,--prompt", first_, "TEXT", "the first message");
  conversation.add_text("--system", system_, "TEXT", "the system message");
  conversation.add_text("--history", history_, "FILE",
                        "where messages are kept for the arrow keys of later chats, if lines "
                        "are edited with libedit; by default outrider/chat_history in "
                        "$XDG_STATE_HOME or ~/.local/state");
  conversation.add_switch("--no-history", no_history_, "keep no messages for later chats");
  add_model_options(app, model_);
  add_request_options(app, request_, {"namespace"});
  add_exact_option(app, "Speculation", model_);
  add_answer_options(app, answer_);
  add_output_options(app, output_);
}

void ChatCommand::check() {
  if (history_ && no_history_) {
    throw UsageError("--history and --no-history are both there", "give one of them");
  }
  require_model(model_);
  check_request(request_, model_);
  check_dynamic_file(*request_.app, request_.files);
}

// All that was given is loaded, also what is off at first: /set may switch it on.
LocalSetup ChatCommand::setup() const {
  RequestArguments all = request_;
  all.request.speculative = true;
  if (all.request.width == 1) all.request.width = kAutoWidth;
  LocalSetup setup = setup_for(all, model_);
  if (model_.draft_model && !setup.draft) setup.draft = draft_options(model_);
  return setup;
}

// Found before anything is typed.
Status ChatCommand::check_template(const LocalRuntime& local) const {
  CompletionRequest request;
  request.messages = {{.role = "user", .content = "hello"}};
  const Status status = make_prompt(request, local.target()).status();
  return status.code() == StatusCode::kUnsupported ? status : Status();
}

void ChatCommand::greet() const {
  if (!interactive_) return;
  const auto file = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  std::string text = file(*model_.model);
  if (model_.draft_model) text += " with " + file(*model_.draft_model);
  print_text(one_line(text) + ". /help lists the commands, Ctrl-D ends.\n\n");
}

void ChatCommand::note(const Status& status) {
  if (status.ok()) return;
  failed_ = true;
  print_error(status.message());
}

void ChatCommand::take(ChatState& chat, const ChatInput& input) {
  note(input.command ? do_command(chat, input.text) : chat.ask(input.text));
  if (interactive_ && !chat.ended()) std::fputs("\n", stderr);
}

int ChatCommand::talk(ChatState& chat, ChatReader& reader, SignalWatch& signals) {
  bool once = false;  // Ctrl-C, with nothing typed
  while (!chat.ended()) {
    ChatInput input;
    const ChatReader::Kind kind = reader.next(input);
    if (interactive_ && kind != ChatReader::Kind::kInput) std::fputs("\n", stderr);
    if (kind == ChatReader::Kind::kEnd || signals.terminated()) break;
    const bool again = once;
    once = kind == ChatReader::Kind::kInterrupted;
    if (once && (again || !interactive_)) return kSignalBase + SIGINT;
    if (once) std::fputs("(Ctrl-C again, or Ctrl-D, ends)\n", stderr);
    if (kind == ChatReader::Kind::kTooLong) {
      const Status too_long =
          invalid_argument("a line has more than " + std::to_string(kMaxLineBytes) + " bytes");
      note(too_long);
      chat.put_error(too_long);
    }
    if (kind != ChatReader::Kind::kInput) continue;
    take(chat, input);
    if (signals.terminated() || (signals.raised() && !interactive_)) break;
    if (signals.raised()) reader.drop_typed();
    signals.lower();  // it was the answer that Ctrl-C was about
  }
  if (signals.raised()) return signals.exit_code();
  return failed_ && !interactive_ ? kFailed : kDone;
}

Result<int> ChatCommand::run() {
  interactive_ = isatty(STDIN_FILENO) == 1;
  const std::vector<int> of_terminal =
      interactive_ ? std::vector<int>{SIGTSTP, SIGWINCH} : std::vector<int>{};
  Terminal& terminal = watch(of_terminal);
  // Before the models are loaded: what is typed meanwhile is the first line.
  const std::string history = no_history_ ? "" : history_.value_or(default_history_file());
  std::unique_ptr<LineSource> lines = edited_lines(history);
  if (lines == nullptr) lines = plain_lines(kMaxLineBytes);
  terminal.signals.on_other([&lines](int number) { lines->handle(number); });
  terminal.signals.before_exit([&lines] { lines->give_back(); });
  const OnExit unwatch([&terminal] {
    terminal.signals.on_other({});
    terminal.signals.before_exit({});
  });
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<LocalRuntime> local,
                            LocalRuntime::open(setup(), terminal));
  local->print_warnings(request_.request);
  local->print_template_warning();
  OUTRIDER_RETURN_IF_ERROR(check_template(*local));

  ChatReader reader(*lines, terminal.signals);
  ChatState chat({.local = *local,
                  .terminal = terminal,
                  .model = model_,
                  .request = request_,
                  .answer = answer_});
  if (interactive_) terminal.signals.repeat_interrupts();
  greet();
  if (system_) note(chat.set_system(*system_));
  if (first_) {
    if (interactive_) print_text("> " + *first_ + "\n");
    take(chat, {.text = *first_});
    if (interactive_) terminal.signals.lower();
  }
  const int code = terminal.signals.raised() ? terminal.signals.exit_code()
                                             : talk(chat, reader, terminal.signals);
  OUTRIDER_RETURN_IF_ERROR(lines->status());
  return code;
}

}  // namespace

std::unique_ptr<Command> make_chat_command() { return std::make_unique<ChatCommand>(); }

}  // namespace outrider::tools
