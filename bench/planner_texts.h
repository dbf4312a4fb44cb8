// What bench_planner plays: texts that the target said, and the draft model's rows behind them.
// Both are kept in a file where one is named, since computing them takes minutes and playing them
// seconds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/give_up.h"
#include "bench/planner_setting.h"
#include "json/json.h"
#include "model/language_model.h"
#include "model/vocabulary.h"

namespace outrider {

struct Text {
  std::vector<Token> prompt;
  std::vector<Token> said;
  std::uint64_t seed = 0;
};

// The likeliest tokens of a row, with their logits: all within kRowDepth of the best. What is left
// out has less than a hundredth of a chance together, whatever the noise.
inline constexpr float kRowDepth = 16.0f;
using SparseRow = std::vector<std::pair<Token, float>>;

inline SparseRow sparse(std::span<const float> row) {
  const float least = *std::max_element(row.begin(), row.end()) - kRowDepth;
  SparseRow result;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] >= least) result.emplace_back(static_cast<Token>(i), row[i]);
  }
  return result;
}

inline std::vector<float> dense(const SparseRow& row, std::int32_t n_vocab) {
  std::vector<float> result(static_cast<std::size_t>(n_vocab), -1e30f);
  for (const auto& [token, logit] : row) result[static_cast<std::size_t>(token)] = logit;
  return result;
}

// The rows of a model, each computed once: all settings ask for much the same ones.
class Remembered {
 public:
  // `path`: where they are kept; empty: nowhere. The file is for one model only.
  Remembered(LanguageModel& model, std::string path) : model_(model), path_(std::move(path)) {
    std::ifstream file(path_, std::ios::binary);
    std::uint64_t key = 0;
    std::uint64_t n = 0;
    while (read(file, &key, 1) && read(file, &n, 1)) {
      SparseRow row(n);
      if (!read(file, row.data(), n)) break;
      rows_.emplace(key, std::move(row));
    }
  }

  std::vector<float> row(std::span<const Token> context) {
    return dense(sparse_row(context), model_.capabilities().n_vocab);
  }

  const SparseRow& sparse_row(std::span<const Token> context) {
    std::uint64_t key = context.size();
    for (const Token token : context) key = mix64(key ^ static_cast<std::uint64_t>(token));
    const auto [found, is_new] = rows_.try_emplace(key);
    if (!is_new) return found->second;
    found->second = sparse(compute(context));
    if (path_.empty()) return found->second;
    if (!out_.is_open()) out_.open(path_, std::ios::binary | std::ios::app);
    const std::uint64_t n = found->second.size();
    write(&key, 1);
    write(&n, 1);
    write(found->second.data(), n);
    return found->second;
  }

 private:
  template <typename T>
  static bool read(std::ifstream& file, T* values, std::size_t n) {
    return static_cast<bool>(file.read(reinterpret_cast<char*>(values),  // NOLINT: plain numbers
                                       static_cast<std::streamsize>(n * sizeof(T))));
  }
  template <typename T>
  void write(const T* values, std::size_t n) {
    out_.write(reinterpret_cast<const char*>(values),  // NOLINT: plain numbers
               static_cast<std::streamsize>(n * sizeof(T)));
  }

  std::vector<float> compute(std::span<const Token> context) {
    const std::size_t end = context.size() - 1;
    std::size_t common = 0;
    while (common < std::min(end, held_.size()) && held_[common] == context[common]) ++common;
    if (!model_.truncate(0, static_cast<Pos>(common)).ok()) give_up("cannot go back");
    const TokenTree root(context[end]);
    const std::size_t most = static_cast<std::size_t>(model_.capabilities().n_batch) - 1;
    for (; end - common > most; common += most) {
      const EvalItem part{.seq = 0, .prefix = context.subspan(common, most)};
      if (!model_.evaluate({&part, 1}).ok() || !model_.commit(0, {}).ok()) give_up("no row");
    }
    const EvalItem item{.seq = 0, .prefix = context.subspan(common, end - common), .tree = &root};
    if (!model_.evaluate({&item, 1}).ok()) give_up("no row");
    const std::span<const float> logits = model_.logits(0, kRoot);
    std::vector<float> row(logits.begin(), logits.end());
    if (!model_.commit(0, std::vector<NodeId>{kRoot}).ok()) give_up("cannot go on");
    held_.assign(context.begin(), context.end());
    return row;
  }

  LanguageModel& model_;
  std::string path_;
  std::ofstream out_;
  std::vector<Token> held_;  // what the model has seen
  std::unordered_map<std::uint64_t, SparseRow> rows_;
};

// The prompts of a file (JSON lines with `prompt`, `turns` or `messages`), those that leave half of
// the context.
inline std::vector<std::vector<Token>> read_prompts(const std::string& path,
                                                    const Vocabulary& vocabulary) {
  std::ifstream file(path);
  const std::string lines((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::vector<Token>> prompts;
  const std::string error = json::parse_lines(lines, [&](const json::Json& line, std::size_t) {
    std::string text = line.value("prompt", "");
    if (text.empty()) {
      std::string said = line.contains("turns") ? line["turns"].at(0).get<std::string>() : "";
      for (const json::Json& m : line.value("messages", json::Json::array())) {
        if (said.empty() && m.at("role") == "user") said = m.at("content");
      }
      if (said.empty()) return std::string("has neither prompt, turns nor messages of a user");
      text = "<|im_start|>user\n" + said + "<|im_end|>\n<|im_start|>assistant\n";
    }
    std::vector<Token> tokens = need(vocabulary.tokenize(text, true, true), "prompt");
    if (tokens.size() < kContext / 2) prompts.push_back(std::move(tokens));
    return std::string();
  });
  if (!error.empty()) give_up(path + ": " + error);
  if (prompts.empty()) give_up("no prompts in '" + path + "'");
  return prompts;
}

// Texts in a file, one a line: seed, length of the prompt, length of the rest, tokens.
inline std::vector<Text> read_texts(const std::string& path) {
  std::vector<Text> texts;
  std::ifstream file(path);
  std::uint64_t seed = 0;
  std::size_t n_prompt = 0;
  std::size_t n_said = 0;
  while (file >> seed >> n_prompt >> n_said) {
    Text text{std::vector<Token>(n_prompt), std::vector<Token>(n_said), seed};
    for (Token& token : text.prompt) file >> token;
    for (Token& token : text.said) file >> token;
    if (file) texts.push_back(std::move(text));
  }
  return texts;
}

inline void write_texts(const std::string& path, const std::vector<Text>& texts) {
  std::ofstream file(path);
  for (const Text& text : texts) {
    file << text.seed << ' ' << text.prompt.size() << ' ' << text.said.size();
    for (const Token token : text.prompt) file << ' ' << token;
    for (const Token token : text.said) file << ' ' << token;
    file << '\n';
  }
}

}  // namespace outrider
