#include "tools/text_output.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "draft/lookup_table.h"

namespace outrider::tools {
namespace {

constexpr std::array<std::string_view, 4> kColors = {"\033[32m", "\033[36m", "\033[33m",
                                                     "\033[35m"};
constexpr std::string_view kDefaultColor = "\033[0m";
constexpr std::string_view kTarget = "target";  // as SaidToken::by has it

}  // namespace

bool use_color(std::string_view mode) {
  if (mode == "always") return true;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  return mode == "auto" && isatty(STDOUT_FILENO) == 1;
}

void TextOutput::set_color(std::string_view by) {
  if (!color_ || by == by_) return;
  const auto drafter = std::find(kDrafterNames.begin(), kDrafterNames.end(), by);
  const std::size_t index = static_cast<std::size_t>(drafter - kDrafterNames.begin());
  buffer_ += by == kTarget ? kDefaultColor : kColors[index % kColors.size()];
  by_ = by;
}

void TextOutput::write(const std::vector<SaidToken>& tokens) {
  buffer_.clear();
  for (const SaidToken& token : tokens) {
    if (token.text.empty()) continue;
    set_color(token.by);
    buffer_ += token.text;
    last_ = token.text.back();
  }
  write(buffer_);
}

void TextOutput::write(std::string_view bytes) {
  while (!bytes.empty() && !failed()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno != EINTR) {
      status_ =
          internal_error(std::string("cannot write to standard output: ") + std::strerror(errno));
    }
  }
}

void TextOutput::finish() {
  buffer_.clear();
  set_color(kTarget);
  if (last_ != '\n' && (whole_lines_ || isatty(descriptor_) == 1)) buffer_ += '\n';
  last_ = '\n';
  write(buffer_);
}

}  // namespace outrider::tools
