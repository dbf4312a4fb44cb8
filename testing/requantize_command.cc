#include "testing/requantize_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "testing/gguf_progress.h"
#include "testing/requantize.h"

namespace outrider::testing {
namespace {

constexpr int kRequantizingFailed = 1;
constexpr int kWrongRequantizing = 2;

Status requantize(const std::string& input, const std::string& output,
                  const RequantizeOptions& options, bool quiet) {
  ProgressBar bar("converting", quiet);
  return requantize_gguf(input, output, options, [&](int done, int total) {
    bar.update(total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total));
  });
}

}  // namespace

int run_requantize_command(int argc, const char* const* argv) {
  CLI::App app("Converts the weights of a GGUF model to another type, also from a quantised one.",
               "outrider-requantize");
  std::string input;
  std::string output;
  RequantizeOptions options;
  bool quiet = false;
  app.add_option("input", input, "the model, a GGUF file")->required();
  app.add_option("output", output, "where to write the result; replaced if it exists")->required();
  app.add_option("--type", options.type, "the new type, as llama-quantize names it")
      ->required()
      ->check(CLI::IsMember(requantize_types(), CLI::ignore_case));
  app.add_flag("--pure", options.pure, "every matrix in that type, no better one for some of them");
  app.add_option("--output-type", options.output_type,
                 "type of the output matrix and the embedding (default: as --type chooses)");
  app.add_option("--threads", options.n_threads, "threads; 0: as many as the machine has")
      ->check(CLI::Range(0, 1024));
  app.add_flag("--quiet", quiet, "no progress bar (there is none anyway unless on a terminal)");
  app.footer("Exit codes: 0 done, 1 failed, 2 wrong usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongRequantizing;
  }

  const Status status = requantize(input, output, options, quiet);
  if (status.ok()) return 0;
  std::fprintf(stderr, "outrider-requantize: %s\n", status.message().c_str());
  return kRequantizingFailed;
}

}  // namespace outrider::testing
