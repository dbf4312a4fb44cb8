#include "lab/draft_sample.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "input/corpus.h"

namespace outrider::lab {
namespace {

constexpr std::size_t kMostPrompts = 8;
constexpr std::size_t kPieceBytes = 1000;
// Fewer tell little of the chances.
constexpr std::int64_t kLeastTokens = 16;

constexpr std::string_view kUsual[] = {
    "Tell a short story about a lighthouse keeper who gets a letter.",
    "Write a friendly letter to a neighbour about a parcel that was delivered to the wrong house.",
    "Write a Python function that counts the words of a file, with an explanation.",
    "Write a JavaScript function that groups a list of objects by a key, with an example.",
    "Explain how a bicycle stays upright, in a few paragraphs.",
    "What are the advantages and disadvantages of working from home? Give a list.",
    "A train leaves at 9:40 and arrives at 12:15. How long does it travel? Explain each step.",
    "Summarise the history of the printing press in five sentences."};

// As much of it as is valid.
std::string valid_part(std::string text) {
  const std::optional<std::size_t> wrong = first_invalid_utf8(text);
  if (wrong) text.resize(*wrong);
  return text;
}

CompletionRequest request_for(const std::vector<Token>& prompt, const SampleOptions& options,
                              std::int64_t seed) {
  CompletionRequest request;
  request.prompt.assign(prompt.begin(), prompt.end());
  request.sampling = options.sampling;
  request.seed = seed;
  request.max_tokens = options.max_tokens;
  request.speculative = false;
  return request;
}

}  // namespace

std::vector<FilePrompt> usual_prompts() {
  std::vector<FilePrompt> prompts;
  for (const std::string_view text : kUsual) {
    prompts.push_back({.id = std::to_string(prompts.size() + 1), .text = std::string(text)});
  }
  return prompts;
}

std::vector<FilePrompt> prompts_of(const std::vector<std::string>& texts, std::size_t n) {
  std::vector<std::string> pieces;
  for (const std::string& text : texts) {
    for (std::size_t at = 0; at < text.size(); at += kPieceBytes) {
      // Between two spaces, so that no character is cut.
      std::size_t begin = at == 0 ? 0 : text.find_first_of(" \n", at);
      if (begin == std::string::npos) break;
      const std::size_t wanted = begin + kPieceBytes / 2;
      const std::size_t end =
          wanted >= text.size() ? text.size() : text.find_first_of(" \n", wanted);
      std::string piece = text.substr(begin, end == std::string::npos ? end : end - begin);
      if (piece.find_first_not_of(" \n\t\r") != std::string::npos) {
        pieces.push_back(std::move(piece));
      }
    }
  }
  std::vector<FilePrompt> prompts;
  const std::size_t wanted = std::min(n, pieces.size());
  for (std::size_t i = 0; i < wanted; ++i) {
    prompts.push_back({.id = std::to_string(i + 1), .text = pieces[i * pieces.size() / wanted]});
  }
  return prompts;
}

Result<DraftSample> write_sample(const Harness& harness, const SampleOptions& options) {
  DraftSample sample;
  for (const std::string& file : options.files) {
    Result<std::vector<std::string>> texts = read_corpus(file, harness.watcher);
    if (!texts.ok()) return texts.status();
    sample.texts.insert(sample.texts.end(), texts->begin(), texts->end());
  }
  const bool usual = options.files.empty();
  const std::vector<FilePrompt> prompts =
      usual ? usual_prompts() : prompts_of(sample.texts, kMostPrompts);
  if (prompts.empty()) return invalid_argument("--sample: the files have no text");
  const bool chat = usual && harness.target.info().has_chat_template;
  Result<std::vector<TokenPrompt>> tokens = tokenize(harness.target, prompts, chat);
  if (!tokens.ok()) return tokens.status();
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    harness.watcher.update("the target writes a sample",
                           static_cast<double>(i) / static_cast<double>(tokens->size()));
    TokenPrompt& prompt = (*tokens)[i];
    const std::int64_t seed = options.seed + static_cast<std::int64_t>(i);
    const Result<Completion> said = complete(harness, request_for(prompt.tokens, options, seed));
    if (!said.ok()) return said.status();
    // The first is walked: there may be only one.
    if (i % 2 == 1) {
      if (usual) sample.texts.push_back(prompts[i].text);
      sample.texts.push_back(valid_part(said->text));
      continue;
    }
    if (said->tokens.size() < 2) continue;
    sample.walked_tokens += static_cast<std::int64_t>(said->tokens.size());
    sample.walked.push_back({prompt.tokens, said->tokens, static_cast<std::uint64_t>(seed)});
    sample.prompts.push_back(std::move(prompt));
  }
  if (sample.walked_tokens >= kLeastTokens) return sample;
  return invalid_argument("the target said " + std::to_string(sample.walked_tokens) +
                          " tokens to " + std::to_string(prompts.size()) +
                          " prompts, too few to choose a draft by; give other texts with --sample");
}

}  // namespace outrider::lab
