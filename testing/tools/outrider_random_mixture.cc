// outrider-random-mixture FILE.gguf: a mixture of experts of the size of a small real one, with
// random weights in Q4_0: for measuring what steps take. 12 layers of 16 experts of 3.5 million
// weights each, of which a token takes 4; 380 MB.
#include <cstdio>

#include "testing/tiny_gguf.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: outrider-random-mixture FILE.gguf\n");
    return 2;
  }
  outrider::testing::TinyModelOptions options;
  options.name = "random mixture";
  options.n_layer = 12;
  options.n_embd = 768;
  options.n_head = 12;
  options.n_head_kv = 4;
  options.n_ff = 1536;
  options.n_expert = 16;
  options.n_expert_used = 4;
  options.weight_type = outrider::testing::WeightType::kQ4_0;
  const outrider::Status status = outrider::testing::write_tiny_gguf(argv[1], options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "outrider-random-mixture: %s\n", status.message().c_str());
  return 1;
}
