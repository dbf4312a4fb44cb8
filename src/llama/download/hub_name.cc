#include "llama/download/hub_name.h"

#include <algorithm>
#include <cctype>

namespace outrider::llama {
namespace {

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Letters, digits and '_', and between them single '.' and '-': as hubs have it, and nothing that
// could leave the cache's folder or be taken for a pattern.
bool is_part(const std::string& text) {
  if (text.empty() || !is_letter(text.front()) || !is_letter(text.back())) return false;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool is_joint = text[i] == '.' || text[i] == '-';
    if (!is_letter(text[i]) && !(is_joint && is_letter(text[i - 1]))) return false;
  }
  return true;
}

}  // namespace

Result<HubName> parse_hub_name(const std::string& text) {
  const std::size_t colon = text.find(':');
  HubName name{.repo = text.substr(0, colon), .quant = ""};
  if (colon != std::string::npos) name.quant = text.substr(colon + 1);
  const std::size_t slash = name.repo.find('/');
  const bool is_right = slash != std::string::npos && name.repo.size() <= 256 &&
                        is_part(name.repo.substr(0, slash)) &&
                        is_part(name.repo.substr(slash + 1)) &&
                        (colon == std::string::npos || is_part(name.quant));
  if (is_right) return name;
  return invalid_argument("'" + text +
                          "' names no model of the hub; it must be USER/REPO or USER/REPO:QUANT, "
                          "such as ggml-org/gemma-3-1b-it-GGUF:Q4_K_M");
}

}  // namespace outrider::llama
