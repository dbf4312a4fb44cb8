#include "tools/text_output.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/one_line.h"
#include "base/utf8.h"
#include "draft/drafter_table.h"
#include "tools/paste.h"

namespace outrider::tools {
namespace {

constexpr std::array<std::string_view, 5> kColors = {"\033[32m", "\033[36m", "\033[33m", "\033[35m",
                                                     "\033[34m"};
constexpr std::string_view kDefaultColor = "\033[0m";
constexpr std::string_view kDim = "\033[0;2m";
constexpr std::string_view kThought = "thought";  // in the place of who said it
constexpr std::string_view kTarget = "target";    // as SaidToken::by has it

std::string_view color_of(std::string_view by) {
  if (by == kTarget) return kDefaultColor;
  if (by == kThought) return kDim;
  return kColors[drafter_place(by) % kColors.size()];
}

}  // namespace

bool use_color(std::string_view mode) {
  if (mode == "always") return true;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  return mode == "auto" && isatty(STDOUT_FILENO) == 1 && takes_escapes();
}

std::string color_legend(std::span<const std::string_view> drafters) {
  std::string text;
  for (const std::string_view drafter : drafters) {
    text += text.empty() ? "" : ", ";
    text += color_of(drafter);
    text += drafter;
    text += kDefaultColor;
  }
  return text;
}

void TextOutput::set_color(std::string_view by) {
  const bool shown = color_ || (dim_ && (by == kThought || by_ == kThought));
  if (!shown || by == by_) return;
  // Without colours, back from a thought to whoever speaks.
  if (by_ == kThought && by != kTarget) buffer_ += kDefaultColor;
  buffer_ += color_ || by == kThought ? color_of(by) : kDefaultColor;
  by_ = by;
}

std::size_t TextOutput::end_character(std::string_view text) {
  std::size_t n = 0;
  while (!begun_.empty() && n < text.size()) {
    const auto byte = static_cast<unsigned char>(text[n]);
    if (byte < 0x80 || byte >= 0xC0) begun_.clear();  // another one: this one stays cut
    if (begun_.empty()) break;
    begun_ += text[n++];
    if (complete_utf8_prefix(begun_) == begun_.size()) begun_.clear();
  }
  return n;
}

void TextOutput::write(const std::vector<SaidToken>& tokens) {
  buffer_.clear();
  for (const SaidToken& token : tokens) {
    if (token.text.empty()) continue;
    const std::string shown = terminal_ ? terminal_text(token.text, last_) : token.text;
    if (!shown.empty()) last_ = shown.back();
    // No terminal shows a character with an escape sequence in its middle: what is left of one
    // keeps the colour that it began with.
    const std::size_t n_rest = end_character(shown);
    buffer_.append(shown, 0, n_rest);
    const std::string_view text = std::string_view(shown).substr(n_rest);
    if (text.empty()) continue;
    set_color(token.by);
    buffer_ += text;
    begun_ = text.substr(complete_utf8_prefix(text));
  }
  write(buffer_);
}

void TextOutput::write_thought(std::string_view text) {
  write(std::vector<SaidToken>{{.text = std::string(text), .by = kThought}});
}

void TextOutput::write(std::string_view bytes) {
  while (!bytes.empty() && !failed()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // Another process that shares the terminal or pipe has set O_NONBLOCK for all of them.
      pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      status_ =
          internal_error(std::string("cannot write to standard output: ") + std::strerror(errno));
    }
  }
}

void TextOutput::finish() {
  buffer_.clear();
  begun_.clear();
  set_color(kTarget);
  if (last_ != '\n' && (whole_lines_ || terminal_)) buffer_ += '\n';
  last_ = '\n';
  write(buffer_);
}

}  // namespace outrider::tools
