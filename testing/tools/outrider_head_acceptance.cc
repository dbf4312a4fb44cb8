// outrider-head-acceptance KIND TARGET.gguf [HEAD.gguf]: what llama.cpp's own driver of a trained
// head gets accepted at temperature 0, by depth (testing/llama_heads.h): the figure to compare a
// drafter of ours and a training script's own measurement with. With --guesses it prints, for each
// prompt, a line of JSON: the tokens of prompt and text, and the guesses behind each from `first`
// on.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "json/json.h"
#include "testing/llama_heads.h"

namespace {

using namespace outrider;           // NOLINT(google-build-using-namespace): a program
using namespace outrider::testing;  // NOLINT(google-build-using-namespace)

struct Counts {
  long n_guesses = 0;  // whose forerunners were right
  long n_right = 0;
};

std::vector<std::string> read_prompts(const std::string& path) {
  std::vector<std::string> prompts;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const json::Parsed parsed = json::parse(line);
    if (!parsed.ok() || !parsed.value->is_object()) continue;
    const auto prompt = parsed.value->find("prompt");
    if (prompt != parsed.value->end() && prompt->is_string()) {
      prompts.push_back(prompt->get<std::string>());
    }
  }
  return prompts;
}

std::vector<Token> tokenize(const llama_model* model, const std::string& text) {
  std::vector<Token> tokens(text.size() + 4);
  const int n = llama_tokenize(llama_model_get_vocab(model), text.data(),
                               static_cast<std::int32_t>(text.size()), tokens.data(),
                               static_cast<std::int32_t>(tokens.size()), true, true);
  tokens.resize(static_cast<std::size_t>(n > 0 ? n : 0));
  return tokens;
}

// Up to the end of the text, which the runs go past.
void count(const LlamaHeadsRun& run, const llama_model* model, std::vector<Counts>& counts) {
  std::size_t at = 1;
  for (const LlamaHeadsStep& step : run.steps) {
    for (std::size_t i = 0; i < at && i < run.text.size(); ++i) {
      if (llama_vocab_is_eog(llama_model_get_vocab(model), run.text[i])) return;
    }
    for (std::size_t k = 0; k < step.guesses.size(); ++k) {
      if (static_cast<int>(k) > step.n_accepted) break;
      ++counts[k].n_guesses;
      if (static_cast<int>(k) < step.n_accepted) ++counts[k].n_right;
    }
    at += static_cast<std::size_t>(step.n_accepted) + 1;
  }
}

void print(const std::vector<Counts>& counts) {
  std::printf("depth  guesses  right  share  tokens a step of so many guesses\n");
  double tokens = 1.0;
  double alive = 1.0;
  for (std::size_t k = 0; k < counts.size() && counts[k].n_guesses > 0; ++k) {
    const double share =
        static_cast<double>(counts[k].n_right) / static_cast<double>(counts[k].n_guesses);
    alive *= share;
    tokens += alive;
    std::printf("%5zu  %7ld  %5ld  %5.3f  %.2f\n", k + 1, counts[k].n_guesses, counts[k].n_right,
                share, tokens);
  }
}

Status print_guesses(LlamaHeads& heads, const std::vector<Token>& prompt,
                     const std::vector<Token>& text) {
  std::vector<Token> tokens = prompt;
  tokens.insert(tokens.end(), text.begin(), text.end());
  const Result<std::vector<std::vector<Token>>> guesses =
      heads.guesses(tokens, static_cast<int>(prompt.size()));
  if (!guesses.ok()) return guesses.status();
  json::Json line;
  line["tokens"] = tokens;
  line["first"] = prompt.size();
  line["guesses"] = *guesses;
  std::printf("%s\n", json::encode(line).c_str());
  return Status();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Acceptance by depth of a trained head in llama.cpp, at temperature 0.",
               "outrider-head-acceptance");
  const std::map<std::string, LlamaHeadKind> kinds = {{"mtp", LlamaHeadKind::kMtp},
                                                      {"eagle3", LlamaHeadKind::kEagle3},
                                                      {"dflash", LlamaHeadKind::kDflash}};
  LlamaHeadsOptions options;
  options.n_ctx = 1024;
  std::string prompts_path;
  int n_tokens = 128;
  bool prints_guesses = false;
  app.add_option("kind", options.kind, "mtp, eagle3 or dflash")
      ->required()
      ->transform(CLI::CheckedTransformer(kinds));
  app.add_option("target", options.target_path, "the target's file, a GGUF")->required();
  app.add_option("head", options.head_path, "the head's, for eagle3 and dflash");
  app.add_option("--prompts", prompts_path, "lines of JSON with a \"prompt\"")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--draft", options.n_draft, "guesses at a time")->check(CLI::Range(1, 64));
  app.add_option("--tokens", n_tokens, "of each text")->check(CLI::Range(1, 100000));
  app.add_option("--context", options.n_ctx, "of target and head");
  app.add_option("--threads", options.n_threads, "of llama.cpp")->check(CLI::Range(1, 512));
  app.add_flag("--guesses", prints_guesses, "print them, position by position");
  CLI11_PARSE(app, argc, argv);
  Result<LlamaHeads> heads = LlamaHeads::load(options);
  if (!heads.ok()) {
    std::fprintf(stderr, "outrider-head-acceptance: %s\n", heads.status().message().c_str());
    return 1;
  }
  std::vector<Counts> counts(static_cast<std::size_t>(options.n_draft));
  for (const std::string& prompt : read_prompts(prompts_path)) {
    const std::vector<Token> tokens = tokenize(heads->target(), prompt);
    if (tokens.size() < 2) continue;
    const Result<LlamaHeadsRun> run = heads->run(tokens, n_tokens);
    Status status = run.status();
    if (run.ok() && prints_guesses) status = print_guesses(*heads, tokens, run->text);
    if (!status.ok()) {
      std::fprintf(stderr, "outrider-head-acceptance: %s\n", status.message().c_str());
      return 1;
    }
    count(*run, heads->target(), counts);
  }
  if (!prints_guesses) print(counts);
  return 0;
}
