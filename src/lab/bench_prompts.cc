#include "lab/bench_prompts.h"

#include <algorithm>
#include <utility>

#include "base/list_of.h"

namespace outrider::lab {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

std::vector<std::string> categories_of(const std::vector<FilePrompt>& prompts) {
  std::vector<std::string> names;
  for (const FilePrompt& prompt : prompts) {
    if (!contains(names, prompt.category)) names.push_back(prompt.category);
  }
  return names;
}

Result<std::vector<FilePrompt>> choose_prompts(std::vector<FilePrompt> prompts,
                                               const PromptChoice& choice) {
  for (FilePrompt& prompt : prompts) {
    if (prompt.category.empty()) prompt.category = kNoCategory;
  }
  const std::vector<std::string> names = categories_of(prompts);
  for (const std::string& wanted : choice.categories) {
    if (contains(names, wanted)) continue;
    return invalid_argument("--categories has '" + wanted + "', which no prompt is of; there " +
                            (names.size() == 1 ? "is " : "are ") + list_of(names));
  }
  std::vector<std::int64_t> sizes(names.size(), 0);
  const auto index_of = [&names](const FilePrompt& prompt) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), prompt.category) -
                                    names.begin());
  };
  for (const FilePrompt& prompt : prompts) ++sizes[index_of(prompt)];
  std::vector<std::int64_t> seen(names.size(), 0);
  std::vector<FilePrompt> chosen;
  for (FilePrompt& prompt : prompts) {
    const std::size_t c = index_of(prompt);
    const std::int64_t i = seen[c]++;
    if (!choice.categories.empty() && !contains(choice.categories, prompt.category)) continue;
    // Of n prompts, k are taken where i * k / n steps on.
    const std::int64_t k = choice.per_category;
    if (k > 0 && k < sizes[c] && (i * k) / sizes[c] == ((i + 1) * k) / sizes[c]) continue;
    if (choice.limit > 0 && chosen.size() == static_cast<std::size_t>(choice.limit)) break;
    chosen.push_back(std::move(prompt));
  }
  return chosen;
}

}  // namespace outrider::lab
