// What the files of drafters hold: n-gram caches and stores of texts.
#pragma once

#include <string>

#include "draft/ngram/ngram_file.h"
#include "draft/suffix/suffix_store.h"
#include "json/json.h"

namespace outrider {

// {"file","ngrams","by_order","followers","counts","vocabulary","tokenizer","memory_bytes",
// "load_ms"}. `load_ms`: what reading it took.
json::Json ngram_stats_json(const std::string& path, const NgramFile& file, double load_ms);
// The same for people; `stats`: as above.
std::string ngram_stats_table(const json::Json& stats);

// {"store","texts","tokens","bytes","n_vocab","tokenizer_hash"}
json::Json suffix_stats_json(const std::string& path, const SuffixStore& store);
// The same for people, a line.
std::string suffix_stats_line(const std::string& path, const SuffixStore& store);

}  // namespace outrider
