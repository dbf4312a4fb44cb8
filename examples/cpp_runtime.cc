// The runtime from C++, inside this build: the same text without and with speculation, and both
// speeds. Links the layer outrider_backend; see cmake/embedding_tests.cmake.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "backend/llama_loader.h"
#include "serve/runtime.h"

namespace {

using outrider::CompletionRequest;
using outrider::CompletionResult;
using outrider::PolledCompletion;
using outrider::Result;
using outrider::Runtime;

int fail(const outrider::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

// Loads both models; the runtime works on them in the background.
outrider::Status load(Runtime& runtime, const std::string& target, const std::string& draft) {
  outrider::ModelOptions options;
  options.path = target;
  OUTRIDER_RETURN_IF_ERROR(runtime.load(outrider::ModelRole::kTarget, options));
  options.path = draft;
  OUTRIDER_RETURN_IF_ERROR(runtime.load(outrider::ModelRole::kDraft, options));
  runtime.wait_loaded(-1);
  const outrider::RuntimeStatus status = runtime.status();
  return status.target.error.ok() ? status.draft.error : status.target.error;
}

// One completion, its text printed as it comes.
Result<std::shared_ptr<const CompletionResult>> generate(Runtime& runtime, bool speculative,
                                                         int n) {
  CompletionRequest request;
  request.prompt.emplace_back("Once upon a time");
  request.max_tokens = n;
  request.seed = 1;
  request.speculative = speculative;
  const Result<outrider::StartedCompletion> started = runtime.start(std::move(request));
  if (!started.ok()) return started.status();
  while (true) {
    Result<PolledCompletion> polled = runtime.poll(started->id, 1000);
    if (!polled.ok()) return polled.status();
    for (const outrider::SaidToken& token : polled->tokens) {
      std::fwrite(token.text.data(), 1, token.text.size(), stdout);
    }
    std::fflush(stdout);
    if (!polled->finished) continue;
    std::putchar('\n');
    return polled->result;
  }
}

double tokens_per_second(const CompletionResult& result) {
  const outrider::Timings& t = result.completion.timings;
  return t.predicted_ms > 0.0
             ? 1000.0 * static_cast<double>(t.predicted_after_first) / t.predicted_ms
             : 0.0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: cpp_runtime TARGET.gguf DRAFT.gguf [TOKENS]\n");
    return 2;
  }
  const int n = argc > 3 ? std::atoi(argv[3]) : 64;
  outrider::LlamaLoader loader;
  Result<std::unique_ptr<Runtime>> runtime = Runtime::create({}, loader);
  if (!runtime.ok()) return fail(runtime.status());
  const outrider::Status loaded = load(**runtime, argv[1], argv[2]);
  if (!loaded.ok()) return fail(loaded);
  Result<std::shared_ptr<const CompletionResult>> plain = generate(**runtime, false, n);
  if (!plain.ok()) return fail(plain.status());
  Result<std::shared_ptr<const CompletionResult>> fast = generate(**runtime, true, n);
  if (!fast.ok()) return fail(fast.status());
  std::printf("plain %.1f tokens/s, speculative %.1f tokens/s\n", tokens_per_second(**plain),
              tokens_per_second(**fast));
  const bool equal = (*plain)->completion.tokens == (*fast)->completion.tokens;
  std::puts(equal ? "the texts are equal" : "the texts differ");
  return equal ? 0 : 1;
}
