#include "input/prompt_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "input/corpus.h"
#include "json/json.h"

namespace outrider {
namespace {

using json::Json;

constexpr int kLookMs = 50;  // at a watcher's flag

std::string shown(const std::string& path) {
  return path == "-" ? "standard input" : "'" + path + "'";
}

Status read_error(const std::string& path, int error) {
  const std::string reason = std::strerror(error);
  if (error == ENOENT) return not_found(shown(path) + " does not exist");
  if (error == EISDIR) return invalid_argument(shown(path) + " is a folder; give a file");
  return internal_error("cannot read " + shown(path) + ": " + reason);
}

Status write_error(const std::string& path, int error) {
  return internal_error("cannot write " + shown(path) + ": " + std::strerror(error));
}

// Up to the last that is not the assistant's. "" or what is wrong with the field.
std::string take_conversation(const Json& messages, FilePrompt& prompt) {
  std::string complaint = take_messages(messages, prompt.messages);
  if (!complaint.empty()) return complaint;
  if (prompt.messages.empty()) return "'messages' must be an array of messages";
  while (!prompt.messages.empty() && prompt.messages.back().role == "assistant") {
    prompt.messages.pop_back();
  }
  return prompt.messages.empty() ? "'messages' holds only the assistant's" : "";
}

std::string take_prompt(const Json& line, FilePrompt& prompt) {
  if (!line.is_object()) return "must be an object, but is " + std::string(json::kind(line));
  for (const char* field : {"question_id", "id"}) {
    if (!line.contains(field)) continue;
    prompt.id =
        line[field].is_string() ? line[field].get<std::string>() : json::encode(line[field]);
  }
  if (line.contains("category") && line["category"].is_string()) prompt.category = line["category"];
  if (line.contains("turns")) {
    const Json& turns = line["turns"];
    const bool good = turns.is_array() && !turns.empty() && turns.front().is_string();
    if (!good) return "'turns' must be an array of texts, but is " + std::string(json::kind(turns));
    prompt.text = turns.front();
    return "";
  }
  if (line.contains("prompt")) {
    const Json& text = line["prompt"];
    if (!text.is_string())
      return "'prompt' must be a text, but is " + std::string(json::kind(text));
    prompt.text = text;
    return "";
  }
  if (line.contains("messages")) return take_conversation(line["messages"], prompt);
  return "has none of 'turns', 'prompt' and 'messages'";
}

}  // namespace

Result<std::string> read_all(const std::string& path, const Watcher& watcher) {
  const bool standard_input = path == "-";
  const int descriptor = standard_input ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return read_error(path, errno);
  std::string text;
  std::array<char, 65536> block;
  int error = 0;
  bool ended = false;
  for (;;) {
    if (watcher.interrupt != nullptr) {
      pollfd next{.fd = descriptor, .events = POLLIN, .revents = 0};
      const int n_ready = poll(&next, 1, kLookMs);
      ended = watcher.interrupted();
      if (ended) break;
      if (n_ready == 0) continue;
    }
    const ssize_t n = read(descriptor, block.data(), block.size());
    if (n > 0) text.append(block.data(), static_cast<std::size_t>(n));
    if (n == 0) break;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      // Another process that shares the terminal or pipe has set O_NONBLOCK for all of them. Who
      // may be interrupted waits above.
      pollfd more{.fd = descriptor, .events = POLLIN, .revents = 0};
      if (watcher.interrupt == nullptr) poll(&more, 1, -1);
    } else if (n < 0 && errno != EINTR) {
      error = errno;
      break;
    }
  }
  if (!standard_input) close(descriptor);
  if (ended) return cancelled("interrupted");
  if (error != 0) return read_error(path, error);
  return text;
}

Status write_file(const std::string& path, std::string_view contents) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool good = file != nullptr;
  if (good) good = std::fwrite(contents.data(), 1, contents.size(), file) == contents.size();
  int error = good ? 0 : errno;
  if (file != nullptr && std::fclose(file) != 0 && good) error = errno;
  return error == 0 ? Status() : write_error(path, error);
}

Status check_write_file(const std::string& path) {
  if (path.empty()) return invalid_argument("cannot write '': give a file's name");
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return write_error(path, EISDIR);
  const bool is_there = std::filesystem::exists(path, ignored);
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const int denied = is_there ? access(path.c_str(), W_OK) : access(folder.c_str(), W_OK | X_OK);
  return denied == 0 ? Status() : write_error(path, errno);
}

Result<std::vector<FilePrompt>> read_prompt_file(const std::string& path, std::size_t limit) {
  Result<std::string> text = read_all(path);
  if (!text.ok()) return text.status();
  std::vector<FilePrompt> prompts;
  const std::string error = json::parse_lines(*text, [&](const Json& line, std::size_t number) {
    if (limit != 0 && prompts.size() == limit) return std::string();
    FilePrompt prompt;
    prompt.id = std::to_string(number);
    const std::string complaint = take_prompt(line, prompt);
    if (complaint.empty()) prompts.push_back(std::move(prompt));
    return complaint;
  });
  if (!error.empty()) {
    return invalid_argument("prompt file " + shown(path) + ", " + error +
                            "; it takes JSON lines with 'turns', 'prompt' or 'messages'");
  }
  if (prompts.empty()) {
    return invalid_argument("prompt file " + shown(path) +
                            " is empty; it takes JSON lines with 'turns', 'prompt' or 'messages'");
  }
  return prompts;
}

}  // namespace outrider
