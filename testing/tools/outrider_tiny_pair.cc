// outrider-tiny-pair TARGET.gguf DRAFT.gguf [NOISE]: two tiny models with random weights, for tests
// that are no C++ and for examples. The draft is the target with so much noise
// (testing/tiny_pair.h).
#include <cstdio>
#include <cstdlib>

#include "testing/tiny_pair.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: outrider-tiny-pair TARGET.gguf DRAFT.gguf [NOISE]\n");
    return 2;
  }
  outrider::testing::TinyPairOptions options;
  options.noise = argc == 4 ? std::strtof(argv[3], nullptr) : 0.02F;
  const outrider::Status status = outrider::testing::write_tiny_pair(argv[1], argv[2], options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "outrider-tiny-pair: %s\n", status.message().c_str());
  return 1;
}
