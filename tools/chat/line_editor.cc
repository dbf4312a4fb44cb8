#include "tools/chat/line_editor.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#ifdef OUTRIDER_LIBEDIT
#include <histedit.h>
#include <langinfo.h>

#include <array>
#include <atomic>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cwchar>
#include <memory>
#include <mutex>
#include <string_view>

#include "store/atomic_file.h"
#include "store/file_lock.h"
#include "store/file_ops.h"
#include "tools/chat/terminal_modes.h"
#include "tools/paste.h"
#include "tools/report.h"
#include "tools/signals.h"
#endif

namespace outrider::tools {

std::string default_history_file() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/outrider/chat_history";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return "";
  return std::string(home) + "/.local/state/outrider/chat_history";
}

#ifndef OUTRIDER_LIBEDIT

bool has_line_editor() { return false; }
std::unique_ptr<LineSource> edited_lines(const std::string& /*history_file*/) { return nullptr; }

#else

namespace {

constexpr int kHistoryLength = 1000;
constexpr char kQuote = 'V' & 0x1F;  // Ctrl-V, libedit's ed-quoted-insert
// The symbol for a tab stands for it while a line is edited. libedit loses count of the rows where
// a line with a tab follows another: it shows them twice, with empty ones between.
constexpr std::string_view kTab = "\xE2\x90\x89";

std::string with_replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// libedit shows and counts characters by the locale. False where there is none for UTF-8.
bool set_utf8_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) == "UTF-8") return true;
  return std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
}

// Whether there is something in the file that is not to be lost.
bool holds_bytes(const std::string& file) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  return !error && bytes > 0;
}

// What the file holds, if it can be read. Null: no memory. `*lost`: it holds something that could
// not be read, and that a new history would replace.
History* load_history(const std::string& file, bool* lost) {
  History* const loaded = history_init();
  if (loaded == nullptr) return nullptr;
  HistEvent event;
  history(loaded, &event, H_SETSIZE, kHistoryLength);
  history(loaded, &event, H_SETUNIQUE, 1);
  const bool read = file.empty() || history(loaded, &event, H_LOAD, file.c_str()) >= 0;
  *lost = !read && holds_bytes(file);
  return loaded;
}

void enter(History* to, const std::string& message) {
  HistEvent event;
  history(to, &event, H_ENTER, with_replaced(message, "\t", kTab).c_str());
}

// All of it as libedit writes it. Empty: it could not. Through a file without a name, since libedit
// sets the mode of what it writes to, which a stream in memory has not.
std::string written(History* entries) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  HistEvent event;
  if (!file || history(entries, &event, H_SAVE_FP, file.get()) < 0) return "";
  // libedit does not look, and rewind() would forget it.
  if (std::fflush(file.get()) != 0 || std::ferror(file.get()) != 0) return "";
  std::rewind(file.get());
  std::string text;
  std::array<char, 4096> chunk;
  while (const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    text.append(chunk.data(), n);
  }
  return std::ferror(file.get()) == 0 ? text : "";
}

class EditedLines : public LineSource {
 public:
  explicit EditedLines(const std::string& history_file);
  ~EditedLines() override;
  EditedLines(const EditedLines&) = delete;
  EditedLines& operator=(const EditedLines&) = delete;

  bool good() const { return editor_ != nullptr && history_ != nullptr; }

  Kind next(const std::string& prompt, std::string& line) override;
  bool had_text() const override { return had_text_; }
  void interrupt() override { bytes_.interrupt(); }
  void resume() override;
  const Status& status() const override { return bytes_.status(); }
  void handle(int signal_number) override;
  void give_back() override {
    const std::lock_guard<std::mutex> lock(terminal_);
    modes_.give_back();
  }
  void remember(const std::string& message) override;

 private:
  static EditedLines& self(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<EditedLines*>(data);
  }
  static char* show_prompt(EditLine* editor) { return self(editor).prompt_.data(); }
  static int next_key(EditLine* editor, wchar_t* key) { return self(editor).read_key(*key); }
  // 1, or 0 when there is none: the input has ended or was interrupted.
  int read_key(wchar_t& key);
  bool fill();  // inside of next()
  // Shows the line again, below what else is on the screen where `below`.
  void redraw(bool below);
  int rows_above_cursor() const;
  void save_history();

  // Held by who may change the terminal's modes: the editor, from the start of a line to its end
  // except while it waits for keys (it shows the prompt before it sets its modes), or handle().
  std::mutex terminal_;
  TerminalModes modes_;                 // before the editor changes them
  std::atomic<bool> continued_{false};  // since the last redraw()
  InputBytes bytes_{STDIN_FILENO};
  PasteDecoder pastes_{kQuote, kTab};
  std::string keys_;  // not yet given to the editor
  InputBytes::Kind last_ = InputBytes::Kind::kBytes;
  bool had_text_ = false;
  std::string prompt_;
  std::string history_file_;
  std::vector<std::string> entered_;  // by this chat
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
};

EditedLines::EditedLines(const std::string& history_file) : history_file_(history_file) {
  editor_ = el_init("outrider", stdin, stderr, stderr);
  bool lost = false;
  history_ = load_history(history_file_, &lost);
  if (lost) {
    print_warning("'" + history_file_ +
                  "' is no history that can be read, so what is typed is not added to it");
    history_file_.clear();
  }
  if (!good()) return;
  el_set(editor_, EL_CLIENTDATA, this);
  el_set(editor_, EL_EDITOR, "emacs");
  el_set(editor_, EL_PROMPT, show_prompt);
  el_set(editor_, EL_GETCFN, next_key);
  el_set(editor_, EL_HIST, history, history_);
  el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  // What is typed while no line is read is kept as it is, and shown with the next prompt. In cooked
  // mode, which libedit would go back to, the terminal shows it in the middle of an answer and
  // makes a NUL of Ctrl-D; and libedit leaves that mode only after it has shown its prompt.
  el_set(editor_, EL_SETTY, "-x", "-icanon", "-echo", "-iexten", nullptr);
  std::fputs(kPasteMarksOn, stderr);
}

EditedLines::~EditedLines() {
  if (good()) {
    std::fputs(kPasteMarksOff, stderr);
    save_history();
  }
  if (history_ != nullptr) history_end(history_);
  if (editor_ != nullptr) el_end(editor_);
}

// What this chat has entered goes behind what the file holds now: other chats may have ended since
// it was read.
void EditedLines::save_history() {
  if (history_file_.empty() || entered_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(history_file_).parent_path(), ignored);
  // Of the file itself: another chat may have it by another name, through a link.
  const Result<std::string> replaced = file_to_replace(history_file_);
  if (!replaced.ok()) return print_warning(replaced.status().message());
  const std::string beside = *replaced + ".lock";
  const FileLock lock(beside, FileLock::for_at_most(kLockPatience, *replaced));
  if (lock.gave_up()) return print_warning(locked_by_another(*replaced, beside).message());
  bool lost = false;
  History* const all = load_history(history_file_, &lost);
  if (all == nullptr) return;
  if (lost) {
    history_end(all);
    return print_warning("'" + history_file_ + "' can no longer be read; it stays as it is");
  }
  for (const std::string& message : entered_) enter(all, message);
  const std::string text = written(all);
  history_end(all);
  PrivateFileOps files;
  const Status saved = text.empty() ? internal_error("libedit cannot write the history")
                                    : write_whole_file(history_file_, text, files);
  if (!saved.ok()) print_warning(saved.message());
}

bool EditedLines::fill() {
  std::array<char, 4096> chunk;
  std::size_t n = 0;
  terminal_.unlock();
  last_ = bytes_.read(chunk, n);
  terminal_.lock();
  if (last_ == InputBytes::Kind::kPoked) redraw(continued_.exchange(false));
  pastes_.feed({chunk.data(), n}, keys_);
  return last_ == InputBytes::Kind::kBytes || last_ == InputBytes::Kind::kPoked;
}

void EditedLines::handle(int signal_number) {
  if (signal_number == SIGTSTP) {
    const std::lock_guard<std::mutex> lock(terminal_);
    modes_.give_back();
    stop_process();
    modes_.take_again();
    continued_.store(true);
  }
  bytes_.poke();
}

// As the terminal wraps prompt and line at its present width.
int EditedLines::rows_above_cursor() const {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 0;
  const int columns = size.ws_col;
  int column = static_cast<int>(prompt_.size());
  int row = 0;
  const LineInfoW* const typed = el_wline(editor_);
  for (const wchar_t* c = typed->buffer; c < typed->cursor; ++c) {
    const int width = *c == L'\t' ? 8 - column % 8 : (wcwidth(*c) < 0 ? 2 : wcwidth(*c));  // ^A
    column += width;
    if (*c != L'\n' && column < columns) continue;
    ++row;
    column = *c == L'\n' || column == columns ? 0 : width;
  }
  return row;
}

void EditedLines::redraw(bool below) {
  el_resize(editor_);
  std::string back = "\r";
  const int rows = below ? 0 : rows_above_cursor();
  if (rows > 0) back += "\033[" + std::to_string(rows) + "A";
  std::fputs((back + "\033[J").c_str(), stderr);
  el_set(editor_, EL_REFRESH);
}

int EditedLines::read_key(wchar_t& key) {
  for (;;) {
    std::mbstate_t state{};
    const std::size_t n = std::mbrtowc(&key, keys_.data(), keys_.size(), &state);
    const bool cut = keys_.empty() || n == static_cast<std::size_t>(-2);
    if (!cut) {
      const bool valid = n != static_cast<std::size_t>(-1);
      if (!valid) key = L'\uFFFD';
      keys_.erase(0, valid && n > 0 ? n : 1);
      return 1;
    }
    if (fill()) continue;
    const LineInfo* const typed = el_line(editor_);
    had_text_ = typed->lastchar > typed->buffer;
    return 0;
  }
}

EditedLines::Kind EditedLines::next(const std::string& prompt, std::string& line) {
  prompt_ = prompt;
  had_text_ = false;
  last_ = InputBytes::Kind::kBytes;
  continued_.store(false);
  const std::lock_guard<std::mutex> lock(terminal_);
  el_resize(editor_);
  int count = 0;
  const char* const text = el_gets(editor_, &count);
  if (last_ == InputBytes::Kind::kInterrupted) return Kind::kInterrupted;
  if (text == nullptr || count <= 0) return Kind::kEnd;  // Ctrl-D, or the terminal is gone
  line = with_replaced(text, kTab, "\t");
  if (!line.empty() && line.back() == '\n') line.pop_back();
  return Kind::kLine;
}

void EditedLines::resume() {
  bytes_.resume();
  keys_.clear();
  pastes_ = PasteDecoder(kQuote, kTab);
}

void EditedLines::remember(const std::string& message) {
  enter(history_, message);
  entered_.push_back(message);
}

}  // namespace

bool has_line_editor() { return true; }

std::unique_ptr<LineSource> edited_lines(const std::string& history_file) {
  const bool terminals = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
  if (!terminals || !takes_escapes() || !set_utf8_locale()) return nullptr;
  std::unique_ptr<EditedLines> lines = std::make_unique<EditedLines>(history_file);
  if (!lines->good()) return nullptr;
  return lines;
}

#endif

}  // namespace outrider::tools
