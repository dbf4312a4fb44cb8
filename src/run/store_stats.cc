#include "run/store_stats.h"

#include <cstdio>

#include "base/numbers.h"
#include "base/one_line.h"

namespace outrider {
namespace {

using json::Json;

std::string hash_text(const TokenizerId& tokenizer) {
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(tokenizer.hash));
  return hash;
}

}  // namespace

Json ngram_stats_json(const std::string& path, const NgramFile& file, double load_ms) {
  std::uint64_t counts = 0;
  for (std::size_t i = 0; i < file.cache.size(); ++i) counts += file.cache.part(i).total;
  return {{"file", path},
          {"ngrams", file.cache.size()},
          {"by_order", file.cache.sizes()},
          {"followers", file.cache.followers()},
          {"counts", counts},
          {"vocabulary", file.tokenizer.n_vocab},
          {"tokenizer", hash_text(file.tokenizer)},
          {"memory_bytes", file.cache.memory_bytes()},
          {"load_ms", load_ms}};
}

std::string ngram_stats_table(const Json& stats) {
  const auto number = [&stats](const char* name) { return stats[name].dump(); };
  std::string orders;
  for (const Json& size : stats["by_order"]) orders += (orders.empty() ? "" : ", ") + size.dump();
  return one_line(stats["file"].get<std::string>()) + "\n" +                            //
         "  n-grams       " + number("ngrams") + " (order 1 to 4: " + orders + ")\n" +  //
         "  followers     " + number("followers") + ", seen " + number("counts") + " times\n" +
         "  tokenizer     " + number("vocabulary") + " tokens, hash " +
         stats["tokenizer"].get<std::string>() + "\n" +  //
         "  memory        " + fixed(stats["memory_bytes"].get<double>() / (1 << 20), 1) +
         " MiB, loaded in " + fixed(stats["load_ms"].get<double>(), 1) + " ms\n";
}

Json suffix_stats_json(const std::string& path, const SuffixStore& store) {
  return {{"store", path},
          {"texts", store.n_texts()},
          {"tokens", store.n_tokens()},
          {"bytes", store.file().file_bytes()},
          {"n_vocab", store.file().tokenizer().n_vocab},
          {"tokenizer_hash", hash_text(store.file().tokenizer())}};
}

std::string suffix_stats_line(const std::string& path, const SuffixStore& store) {
  return "'" + one_line(path) + "': " + std::to_string(store.n_texts()) + " texts, " +
         std::to_string(store.n_tokens()) + " tokens, " +
         std::to_string(store.file().file_bytes()) +
         " bytes; tokenizer: " + describe(store.file().tokenizer()) + "\n";
}

}  // namespace outrider
