// Which prompts of a file are measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "input/prompt_file.h"

namespace outrider::lab {

struct PromptChoice {
  std::vector<std::string> categories;  // empty: all
  std::int32_t per_category = 0;        // 0: all
  std::int32_t limit = 0;               // of all together; 0: none
};

// What stands for prompts without a category.
inline constexpr const char* kNoCategory = "uncategorised";

// The chosen ones, in the file's order; those without a category get kNoCategory. A sample of a
// category is spread evenly over it, the same every time.
// Errors: kInvalidArgument for a category that no prompt has, naming those that there are.
Result<std::vector<FilePrompt>> choose_prompts(std::vector<FilePrompt> prompts,
                                               const PromptChoice& choice);

// The categories of `prompts`, each once, in the order in which they appear.
std::vector<std::string> categories_of(const std::vector<FilePrompt>& prompts);

}  // namespace outrider::lab
