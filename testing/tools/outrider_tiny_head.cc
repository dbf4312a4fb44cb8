// outrider-tiny-head KIND TARGET.gguf [HEAD.gguf]: a tiny model with a trained head that equals it
// (testing/tiny_gguf_lag.h), for tests that are no C++. KIND mtp and hybrid-mtp bring the head in
// the target's file, eagle3 and dflash in one of its own.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "testing/tiny_gguf_dflash.h"
#include "testing/tiny_gguf_eagle3.h"
#include "testing/tiny_gguf_lag.h"

namespace {

using namespace outrider;           // NOLINT(google-build-using-namespace): a program
using namespace outrider::testing;  // NOLINT(google-build-using-namespace)

struct Wishes {
  std::string kind;
  std::string target;
  std::string head;
  bool noise_head = false;
  float noise = 0.0F;
  int blocks = 1;
  std::vector<Token> tokens;  // that an EAGLE-3 head knows
};

Status write(const Wishes& wishes) {
  const TinyHead head = wishes.noise_head ? TinyHead::kNoise : TinyHead::kEqual;
  TinyLagOptions target;
  target.odd_byte_bias = -30.0F;
  if (wishes.kind == "mtp" || wishes.kind == "hybrid-mtp") {
    target.architecture =
        wishes.kind == "mtp" ? TinyLagArchitecture::kHyV3 : TinyLagArchitecture::kQwen35;
    target.mtp.assign(static_cast<std::size_t>(wishes.blocks), head);
    target.mtp_noise = wishes.noise;
    return write_tiny_lag(wishes.target, target);
  }
  if (wishes.head.empty()) return invalid_argument("HEAD.gguf is missing");
  if (wishes.kind == "eagle3") {
    TinyEagle3Options options;
    options.head = head;
    options.noise = wishes.noise;
    options.tokens = wishes.tokens;
    OUTRIDER_RETURN_IF_ERROR(write_tiny_lag(wishes.target, target));
    return write_tiny_eagle3(wishes.head, target, options);
  }
  target.lags = {3, 4};
  target.reads_current = false;
  TinyDflashOptions options;
  options.head = head;
  options.noise = wishes.noise;
  OUTRIDER_RETURN_IF_ERROR(write_tiny_lag(wishes.target, target));
  return write_tiny_dflash(wishes.head, target, options);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes a tiny model and a trained head that equals it.", "outrider-tiny-head");
  Wishes wishes;
  app.add_option("kind", wishes.kind, "mtp, hybrid-mtp, eagle3 or dflash")
      ->required()
      ->check(CLI::IsMember({"mtp", "hybrid-mtp", "eagle3", "dflash"}));
  app.add_option("target", wishes.target, "the target's file, a GGUF")->required();
  app.add_option("head", wishes.head, "the head's, for eagle3 and dflash");
  app.add_flag("--random", wishes.noise_head, "a head of random weights");
  app.add_option("--noise", wishes.noise,
                 "added to an equal head's weights, relative to their size");
  app.add_option("--blocks", wishes.blocks, "MTP blocks of mtp")->check(CLI::Range(1, 8));
  app.add_option("--tokens", wishes.tokens, "that an EAGLE-3 head knows; left out: all")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  const Status status = write(wishes);
  if (status.ok()) return 0;
  std::fprintf(stderr, "outrider-tiny-head: %s\n", status.message().c_str());
  return 1;
}
