// outrider-tiny-model FILE.gguf: one tiny model with random weights (testing/tiny_gguf.h), for
// tests that are no C++: plain text, hardly ever an end.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "testing/tiny_gguf.h"

int main(int argc, char** argv) {
  CLI::App app("Writes a tiny model with random weights.", "outrider-tiny-model");
  outrider::testing::TinyModelOptions options;
  options.odd_byte_bias = -30.0F;
  options.vocabulary.pieces.push_back(" Hello");  // prompts of llama.cpp's server tests repeat it
  std::string output;
  std::string template_file;
  bool fills_in = false;
  app.add_option("output", output, "the file, a GGUF")->required();
  app.add_option("--seed", options.seed, "of the weights");
  app.add_option("--noise", options.noise, "added to the weights, for a draft of the same seed");
  app.add_option("--experts", options.n_expert, "experts of each layer; 0: none");
  app.add_option("--chat-template-file", template_file, "a template (Jinja) instead of ChatML")
      ->check(CLI::ExistingFile);
  app.add_flag("--space-prefix", options.vocabulary.space_prefix, "the tokenizer adds a space");
  app.add_flag("--fill-in", fills_in, "has tokens to fill in a middle");
  CLI11_PARSE(app, argc, argv);
  if (!template_file.empty()) {
    std::ifstream file(template_file);
    options.vocabulary.template_text.assign(std::istreambuf_iterator<char>(file), {});
  }
  if (fills_in) {
    options.vocabulary.control_texts = {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"};
  }
  const outrider::Status status = outrider::testing::write_tiny_gguf(output, options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "outrider-tiny-model: %s\n", status.message().c_str());
  return 1;
}
