#include "testing/widen_command.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>

#include "testing/gguf_progress.h"
#include "testing/widen.h"

namespace outrider::testing {
namespace {

constexpr int kWideningFailed = 1;
constexpr int kWrongWidening = 2;

// The one thing that a signal handler may touch.
volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int) { interrupted = 1; }

Status widen(const std::string& input, const std::string& output, int factor, bool quiet) {
  ProgressBar bar("widening", quiet);
  return widen_gguf(input, output, factor, [&](std::uint64_t done, std::uint64_t total) {
    bar.update(total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total));
    return interrupted == 0;
  });
}

}  // namespace

int run_widen_command(int argc, const char* const* argv) {
  CLI::App app(
      "Widens a llama-architecture GGUF model: every matrix is padded with zeros, so that a token "
      "costs FACTOR x FACTOR as much and the text stays the same.",
      "outrider-widen");
  std::string input;
  std::string output;
  int factor = 0;
  bool quiet = false;
  app.add_option("input", input, "the model, a GGUF file of the architecture llama")->required();
  app.add_option("output", output, "where to write the wide model; replaced if it exists")
      ->required();
  app.add_option("--factor", factor, "how many times wider")
      ->required()
      ->check(CLI::Range(kMinWidenFactor, kMaxWidenFactor));
  app.add_flag("--quiet", quiet, "no progress bar (there is none anyway unless on a terminal)");
  app.footer("Exit codes: 0 done, 1 failed, 2 wrong usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongWidening;
  }

  interrupted = 0;
  const auto old_int = std::signal(SIGINT, on_interrupt);
  const auto old_term = std::signal(SIGTERM, on_interrupt);
  const Status status = widen(input, output, factor, quiet);
  std::signal(SIGINT, old_int);
  std::signal(SIGTERM, old_term);
  if (status.ok()) return 0;
  std::fprintf(stderr, "outrider-widen: %s\n", status.message().c_str());
  return kWideningFailed;
}

}  // namespace outrider::testing
