// outrider-widen: a larger stand-in for a model, with the same text. See testing/widen.h.
//
// Exit codes: 0 done, 1 failed (message on stderr), 2 wrong usage. Ctrl-C stops it and leaves no
// file behind.
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <string>

#include "testing/gguf_progress.h"
#include "testing/widen.h"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

volatile std::sig_atomic_t g_interrupted = 0;  // the only thing a signal handler may touch

extern "C" void on_interrupt(int) { g_interrupted = 1; }

outrider::Status widen(const std::string& input, const std::string& output, int factor,
                       bool quiet) {
  outrider::testing::ProgressBar bar("widening", quiet);
  return outrider::testing::widen_gguf(
      input, output, factor, [&](std::uint64_t done, std::uint64_t total) {
        bar.update(total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total));
        return g_interrupted == 0;
      });
}

}  // namespace

int main(int argc, char** argv) {
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
      ->check(CLI::Range(outrider::testing::kMinWidenFactor, outrider::testing::kMaxWidenFactor));
  app.add_flag("--quiet", quiet, "no progress bar (there is none anyway unless on a terminal)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }

  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  const outrider::Status status = widen(input, output, factor, quiet);
  if (status.ok()) return 0;
  std::fprintf(stderr, "outrider-widen: %s\n", status.message().c_str());
  return kFailed;
}
