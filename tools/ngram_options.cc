#include "tools/ngram_options.h"

#include <utility>

#include "base/clock.h"
#include "draft/ngram/ngram_file.h"
#include "tools/options.h"
#include "tools/usage.h"

namespace outrider::tools {

void add_ngram_options(CLI::App& app, NgramArguments& a, const std::string& heading,
                       const std::string& dynamic) {
  OptionGroup group(app, heading);
  group.add_text("--ngram-static", a.static_file, "FILE",
                 "ngram-cache: what is common in a large corpus, from 'outrider ngram create'; is "
                 "only read");
  group.add_text("--ngram-dynamic", a.dynamic_file, "FILE", dynamic);
}

void check_ngram_options(const NgramArguments& a, const std::string& drafter, bool used) {
  if (used) return;
  for (const auto& [name, file] : {std::pair("--ngram-static", &a.static_file),
                                   std::pair("--ngram-dynamic", &a.dynamic_file)}) {
    if (!file->has_value()) continue;
    throw UsageError(std::string(name) + " is given, but --drafter is '" + drafter + "'",
                     "give --drafter ngram-cache, too");
  }
}

Result<NgramCache> load_dynamic_ngrams(const std::string& path, const TokenizerId& tokenizer) {
  Result<NgramCache> cache = load_ngrams(path, tokenizer);
  if (cache.status().code() == StatusCode::kNotFound) return NgramCache();
  if (!cache.ok()) return cache.status().with_context("--ngram-dynamic");
  return cache;
}

Result<NgramDrafting> open_ngram_drafting(const NgramArguments& a, const TokenizerId& tokenizer) {
  NgramDrafting result;
  Stopwatch watch;
  if (a.static_file) {
    Result<NgramCache> cache = load_ngrams(*a.static_file, tokenizer);
    if (!cache.ok()) return cache.status().with_context("--ngram-static");
    result.corpus = std::make_shared<const NgramCache>(std::move(*cache));
  }
  result.static_ms = watch.restart();
  if (a.dynamic_file) {
    Result<NgramCache> cache = load_dynamic_ngrams(*a.dynamic_file, tokenizer);
    if (!cache.ok()) return cache.status();
    result.dynamic = std::make_shared<NgramCache>(std::move(*cache));
  }
  result.dynamic_ms = watch.restart();
  result.drafter = std::make_unique<NgramDrafter>(result.corpus, result.dynamic);
  return result;
}

}  // namespace outrider::tools
