#include "tests/cli_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

#include "draft/translated/vocabulary_map.h"
#include "testing/tiny_pair.h"
#include "tests/build_paths.h"

namespace outrider::testing {
namespace {

constexpr std::chrono::minutes kPatience{5};

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {ends[0], ends[1]};
}

Pipe make_terminal() {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_GE(master, 0);
  EXPECT_EQ(grantpt(master), 0);
  EXPECT_EQ(unlockpt(master), 0);
  return {master, open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC)};
}

void close_end(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

std::vector<std::string> child_environment(const CliCall& call) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const bool ours = text.rfind("OUTRIDER_", 0) == 0 || text.rfind("NO_COLOR=", 0) == 0;
    // One that is there twice counts as its first.
    const bool given = call.environment.contains(text.substr(0, text.find('=')));
    if (!ours && !given) variables.push_back(text);
  }
  for (const auto& [name, value] : call.environment) variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Signals as an interactive shell leaves them, whatever the test itself was started under.
void reset_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

class Child {
 public:
  explicit Child(const CliCall& call) : call_(call) { start(); }

  CliResult finish() {
    while (out_.read_end >= 0 || err_.read_end >= 0) {
      if (std::chrono::steady_clock::now() - started_ > kPatience) {
        kill(pid_, SIGKILL);
        ADD_FAILURE() << "the command took longer than five minutes";
      }
      transfer();
    }
    close_end(in_.write_end);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) result_.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
    return std::move(result_);
  }

 private:
  void start() {
    in_ = make_pipe();
    out_ = call_.terminal ? make_terminal() : make_pipe();
    if (!call_.terminal) err_ = make_pipe();
    if (!call_.stdout_to.empty()) {
      close_end(out_.write_end);
      out_.write_end = open(call_.stdout_to.c_str(), O_WRONLY | O_CLOEXEC);
    }
    fcntl(in_.write_end, F_SETFL, O_NONBLOCK);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in_.read_end, STDIN_FILENO);
      dup2(out_.write_end, STDOUT_FILENO);
      dup2(call_.terminal ? out_.write_end : err_.write_end, STDERR_FILENO);
      for (const int descriptor : call_.closed) close(descriptor);
      become_cli(call_);
    }
    close_end(in_.read_end);
    close_end(out_.write_end);
    close_end(err_.write_end);
    signal(SIGPIPE, SIG_IGN);  // a child may end without reading its input
  }

  // Waits a little for something to read or to write, and does it.
  void transfer() {
    if (written_ == call_.input.size() && !call_.interrupt_when_read) close_end(in_.write_end);
    std::array<pollfd, 3> ends = {pollfd{out_.read_end, POLLIN, 0},
                                  pollfd{err_.read_end, POLLIN, 0},
                                  pollfd{in_.write_end, POLLOUT, 0}};
    if (written_ == call_.input.size()) ends[2].fd = -1;
    poll(ends.data(), ends.size(), 100);
    interrupt_when_due();
    if (ends[2].revents != 0) write_input();
    bool news = read_some(ends[0], out_.read_end, result_.out);
    news = read_some(ends[1], err_.read_end, result_.err) || news;
    const bool goes_on =
        !news || !call_.on_output || call_.on_output(pid_, result_.out, result_.err);
    if (!goes_on) close_end(out_.read_end);
  }

  void write_input() {
    const ssize_t n =
        write(in_.write_end, call_.input.data() + written_, call_.input.size() - written_);
    written_ = n < 0 ? call_.input.size() : written_ + static_cast<std::size_t>(n);
  }

  void interrupt_when_due() {
    if (!call_.interrupt_when_read || interrupted_ || written_ < call_.input.size()) return;
    int unread = 0;
    if (ioctl(in_.write_end, FIONREAD, &unread) != 0 || unread > 0) return;
    interrupted_ = true;
    kill(pid_, SIGINT);
  }

  bool read_some(const pollfd& end, int& descriptor, std::string& text) {
    if (end.fd < 0 || end.revents == 0) return false;
    std::array<char, 65536> block;
    const ssize_t n = read(descriptor, block.data(), block.size());
    if (n <= 0) {  // the end; a terminal says EIO
      close_end(descriptor);
      return false;
    }
    text.append(block.data(), static_cast<std::size_t>(n));
    return true;
  }

  const CliCall& call_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  bool interrupted_ = false;
  pid_t pid_ = -1;
  Pipe in_;
  Pipe out_;
  Pipe err_;
  std::size_t written_ = 0;
  CliResult result_;
};

}  // namespace

json::Json CliResult::object() const {
  const json::Parsed parsed = json::parse(out);
  EXPECT_TRUE(parsed.ok()) << parsed.error << "\nstdout: " << out << "\nstderr: " << err;
  EXPECT_EQ(out.find('\n'), out.size() - 1) << "one line";
  return parsed.value.value_or(json::Json::object());
}

void become_cli(const CliCall& call) {
  std::vector<std::string> arguments = {outrider_binary()};
  arguments.insert(arguments.end(), call.arguments.begin(), call.arguments.end());
  std::vector<std::string> variables = child_environment(call);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(variables);
  reset_signals();
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

CliResult run_cli(const CliCall& call) { return Child(call).finish(); }

CliFolder::CliFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "outrider-cli-XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  root_ = name;
}

CliFolder::~CliFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::string CliFolder::write(const std::string& name, const std::string& contents) const {
  std::ofstream(path(name), std::ios::binary) << contents;
  return path(name);
}

CliCall CliFolder::call(std::vector<std::string> arguments) const {
  return {.arguments = std::move(arguments),
          // One thread: several wait for each other by spinning, which takes ages where tests run
          // side by side.
          .environment = {{"OUTRIDER_CACHE", path("cache")},
                          {"OUTRIDER_WIDTH", "4"},  // auto depends on how quick the machine is
                          {"OUTRIDER_PROBE_BUDGET_MS", "300"},
                          {"OUTRIDER_THREADS", "1"}}};
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

CliCall whole_probe(CliCall call) {
  call.environment["OUTRIDER_PROBE_BUDGET_MS"] = "120000";
  return call;
}

void expect_message(const CliResult& result, int exit_code, const std::string& message,
                    const std::string& hint) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  const std::string wanted = "outrider: error: " + message;
  EXPECT_EQ(result.err.substr(0, wanted.size()), wanted) << result.err;
  const std::size_t end = result.err.find('\n');
  ASSERT_NE(end, std::string::npos) << result.err;
  const std::string rest = result.err.substr(end + 1);
  EXPECT_EQ(rest.find("outrider: error: "), std::string::npos) << result.err;
  EXPECT_NE(rest.find(hint), std::string::npos) << result.err;
  EXPECT_LE(std::count(rest.begin(), rest.end(), '\n'), 1) << result.err;
}

const CliModels& cli_models() {
  static const CliModels& models = []() -> const CliModels& {
    static CliModels made;
    made.target = made.folder.path("target.gguf");
    made.draft = made.folder.path("draft.gguf");
    made.other = made.folder.path("other.gguf");
    made.wordy = made.folder.path("wordy.gguf");
    TinyPairOptions pair;
    pair.target.n_ctx_train = 32768;
    pair.noise = 0.1F;
    Status status = write_tiny_pair(made.target, made.draft, pair);
    EXPECT_TRUE(status.ok()) << status.message();
    TinyModelOptions other;
    other.vocabulary.rotate_bytes = 1;
    status = write_tiny_gguf(made.other, other);
    EXPECT_TRUE(status.ok()) << status.message();
    TinyModelOptions wordy;
    wordy.vocabulary.pieces = pieces_of(vocabulary_sample(), 6);
    status = write_tiny_gguf(made.wordy, wordy);
    EXPECT_TRUE(status.ok()) << status.message();
    return made;
  }();
  return models;
}

}  // namespace outrider::testing
