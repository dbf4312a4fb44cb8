// outrider-requantize: another weight type for a GGUF model. See testing/requantize.h.
//
// Exit codes: 0 done, 1 failed (message on stderr), 2 wrong usage.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

#include "testing/gguf_progress.h"
#include "testing/requantize.h"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

outrider::Status requantize(const std::string& input, const std::string& output,
                            const outrider::testing::RequantizeOptions& options, bool quiet) {
  outrider::testing::ProgressBar bar("converting", quiet);
  return outrider::testing::requantize_gguf(input, output, options, [&](int done, int total) {
    bar.update(total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total));
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Converts the weights of a GGUF model to another type, also from a quantised one.",
               "outrider-requantize");
  std::string input;
  std::string output;
  outrider::testing::RequantizeOptions options;
  bool quiet = false;
  app.add_option("input", input, "the model, a GGUF file")->required();
  app.add_option("output", output, "where to write the result; replaced if it exists")->required();
  app.add_option("--type", options.type, "the new type, as llama-quantize names it")
      ->required()
      ->check(CLI::IsMember(outrider::testing::requantize_types(), CLI::ignore_case));
  app.add_flag("--pure", options.pure, "every matrix in that type, no better one for some of them");
  app.add_option("--threads", options.n_threads, "threads; 0: as many as the machine has")
      ->check(CLI::Range(0, 1024));
  app.add_flag("--quiet", quiet, "no progress bar (there is none anyway unless on a terminal)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }

  const outrider::Status status = requantize(input, output, options, quiet);
  if (status.ok()) return 0;
  std::fprintf(stderr, "outrider-requantize: %s\n", status.message().c_str());
  return kFailed;
}
