#include "tools/options/hidden_values.h"

#include <cstring>

namespace outrider::tools {

void hide_values(int argc, char** argv, std::string_view option) {
  const auto hide = [](char* value) { std::memset(value, '*', std::strlen(value)); };
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(option)) continue;
    const std::string_view rest = argument.substr(option.size());
    if (rest.starts_with('=')) {
      hide(argv[i] + option.size() + 1);
    } else if (rest.empty() && i + 1 < argc) {
      hide(argv[++i]);
    }
  }
}

}  // namespace outrider::tools
