#include "api/service.h"
#include "fuzz/tame.h"
#include "fuzz/targets.h"
#include "json/json.h"
#include "testing/fake_loader.h"

namespace outrider::fuzz {

void json_rpc(Bytes input) {
  testing::FakeLoader loader;
  loader.add("target", {.seed = 1, .chat = true});
  loader.add("draft", {.seed = 1, .noise = 0.5f});
  loader.add("broken", {.failure = internal_error("on purpose")});
  const std::unique_ptr<Runtime> runtime = std::move(
      Runtime::create({.slots = 2, .max_queue = 4, .remember_tokens = 1024}, loader).value());
  ModelOptions model;
  model.path = "target";
  model.n_ctx = 64;
  static_cast<void>(runtime->load(ModelRole::kTarget, model));
  static_cast<void>(runtime->wait_loaded(-1));
  api::Service service(*runtime);
  std::string_view lines = text(input);
  for (int n = 0; n < 16 && !lines.empty(); ++n) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const std::optional<std::string> request = tame(line);
    if (!request) continue;
    const std::string answer = service.call(*request);
    if (!answer.empty() && !json::parse(answer).ok()) violated("the answer is no JSON: " + answer);
  }
  service.stop();
  service.wait_idle();
  const std::string broken = runtime->check_integrity();
  if (!broken.empty()) violated(broken);
}

}  // namespace outrider::fuzz
