#include "remote/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "remote/shared_memory.h"

#if defined(__APPLE__)
#include <crt_externs.h>
#define OUTRIDER_ENVIRON (*_NSGetEnviron())
#else
#define OUTRIDER_ENVIRON environ
#endif

namespace outrider {
namespace {

// Above every number that a descriptor gets in the child, so that none is overwritten before it is
// copied.
constexpr int kOutOfTheWay = 64;
constexpr int kFirstInherited = 3;

constexpr std::size_t kLastBytes = 4096;  // of stderr that are looked at
constexpr std::size_t kLastLines = 3;
constexpr std::size_t kLongestLine = 300;

// What posix_spawn is to do in the child before the program begins.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&files_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  bool give(int descriptor, int as) {
    FileDescriptor copy(fcntl(descriptor, F_DUPFD_CLOEXEC, kOutOfTheWay));
    if (!copy.valid()) return false;
    const bool added = posix_spawn_file_actions_adddup2(&files_, copy.get(), as) == 0;
    copies_.push_back(std::move(copy));
    return added;
  }

  bool silence(int descriptor) {
    return posix_spawn_file_actions_addopen(&files_, descriptor, "/dev/null", O_RDWR, 0) == 0;
  }

  void reset_signals() {
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&blocked, number);
    posix_spawnattr_setsigmask(&attributes_, &blocked);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }

  // 0, or an errno.
  int spawn(const std::string& program, const std::vector<std::string>& arguments, pid_t* pid) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    return posix_spawn(pid, program.c_str(), &files_, &attributes_, argv.data(), OUTRIDER_ENVIRON);
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
  std::vector<FileDescriptor> copies_;
};

void sleep_ms(long ms) {
  const timespec pause{.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1'000'000};
  nanosleep(&pause, nullptr);
}

// For a message: one line, no control characters, not too long. Where an assertion failed is told
// without the folders of the machine that the program was built on.
std::string shown(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (line.starts_with('/') && colon != std::string_view::npos) {
    line.remove_prefix(line.rfind('/', colon) + 1);
  }
  std::string text(line.substr(0, kLongestLine));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, ' ');
  return text;
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::string& program,
                                                          const std::vector<std::string>& arguments,
                                                          const std::vector<int>& descriptors) {
  std::unique_ptr<ChildProcess> child(new ChildProcess());
  Result<FileDescriptor> words = make_nameless_file("outrider-stderr");
  if (!words.ok()) return words.status();
  child->stderr_ = std::move(*words);
  fcntl(child->stderr_.get(), F_SETFL, O_APPEND);
  SpawnPlan plan;
  plan.reset_signals();
  bool planned = plan.silence(STDIN_FILENO) && plan.silence(STDOUT_FILENO) &&
                 plan.give(child->stderr_.get(), STDERR_FILENO);
  int next = kFirstInherited;
  for (const int descriptor : descriptors) planned = planned && plan.give(descriptor, next++);
  if (!planned) return resource_exhausted("cannot prepare a process: too many open files");
  const int error = plan.spawn(program, arguments, &child->pid_);
  if (error == 0) return child;
  child->pid_ = -1;
  child->reaped_ = true;
  const std::string message =
      "cannot start '" + program + "': " + std::string(std::strerror(error));
  return error == ENOENT || error == EACCES ? not_found(message) : internal_error(message);
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || reaped_) return;
  kill();
  while (!reap()) sleep_ms(1);
}

bool ChildProcess::reap() {
  if (reaped_) return true;
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return false;
  reaped_ = true;
  known_ =
      ended == pid_;  // else the host has taken it: its SIGCHLD is ignored, or it waits for all
  status_ = known_ ? status : 0;
  clean_ = known_ && WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  return true;
}

bool ChildProcess::wait(int patience_ms) {
  const std::chrono::steady_clock::time_point end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  long pause_ms = 1;
  while (!reap()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    sleep_ms(pause_ms);
    pause_ms = std::min(pause_ms * 2, 20L);
  }
  return true;
}

// A process that has not been waited for keeps its number, so nobody else is hit.
void ChildProcess::kill() {
  if (!reap()) ::kill(pid_, SIGKILL);
}

std::string ChildProcess::ending() const {
  if (!reaped_) return "is running";
  if (!known_) return "has ended";
  if (WIFSIGNALED(status_)) {
    const int number = WTERMSIG(status_);
    return "was killed by signal " + std::to_string(number) + " (" + strsignal(number) + ")";
  }
  return "ended with exit code " + std::to_string(WEXITSTATUS(status_));
}

std::string ChildProcess::last_lines() const {
  struct stat facts = {};
  if (fstat(stderr_.get(), &facts) != 0 || facts.st_size <= 0) return "";
  std::string tail(std::min<std::size_t>(static_cast<std::size_t>(facts.st_size), kLastBytes), 0);
  const ssize_t got = pread(stderr_.get(), tail.data(), tail.size(),
                            facts.st_size - static_cast<off_t>(tail.size()));
  tail.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < tail.size();) {
    const std::size_t end = std::min(tail.find('\n', begin), tail.size());
    const std::string line = shown(std::string_view(tail).substr(begin, end - begin));
    if (line.find_first_not_of(' ') != std::string::npos) lines.push_back(line);
    begin = end + 1;
  }
  std::string words;
  for (std::size_t i = lines.size() - std::min(lines.size(), kLastLines); i < lines.size(); ++i) {
    words += (words.empty() ? "" : "; ") + lines[i];
  }
  return words;
}

}  // namespace outrider
