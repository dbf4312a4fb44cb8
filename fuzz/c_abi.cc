// A byte for each call, with what it takes behind it. Handles are used after they were destroyed
// never, as the interface forbids; all else that a caller can do wrong is done.
#include <array>
#include <memory>
#include <string>

#include "capi/boundary.h"
#include "fuzz/tame.h"
#include "fuzz/targets.h"
#include "testing/fake_loader.h"

namespace outrider::fuzz {
namespace {

using capi::Instance;

constexpr std::size_t kMostInstances = 3;
constexpr int kMostCalls = 24;

std::unique_ptr<ModelLoader> loader() {
  std::unique_ptr<testing::FakeLoader> made = std::make_unique<testing::FakeLoader>();
  made->add("target", {.seed = 1, .chat = true});
  made->add("draft", {.seed = 1, .noise = 0.5f});
  made->add("broken", {.failure = internal_error("on purpose")});
  return made;
}

// Up to the next NUL or newline: a C string.
std::string next_string(Reader& reader) {
  std::string string;
  while (!reader.done()) {
    const char c = static_cast<char>(reader.byte());
    if (c == '\0' || c == '\n') break;
    string += c;
  }
  return string;
}

void create(Reader& reader, Instance*& instance) {
  const std::optional<std::string> config = tame(next_string(reader));
  if (!config || instance != nullptr) return;
  char* error = nullptr;
  instance = capi::create(config->c_str(), &error, loader());
  if ((instance == nullptr) == (error == nullptr)) violated("neither an instance nor an error");
  capi::free_string(error);
}

void call(Reader& reader, Instance* instance) {
  const std::optional<std::string> request = tame(next_string(reader));
  if (!request) return;
  capi::free_string(capi::call(instance, request->c_str()));
}

}  // namespace

void c_abi(Bytes input) {
  Reader reader(input);
  std::array<Instance*, kMostInstances> instances{};
  int events = 0;
  for (int n = 0; n < kMostCalls && !reader.done(); ++n) {
    const std::uint8_t what = reader.byte();
    Instance*& instance = instances[(what >> 4) % kMostInstances];
    switch (what % 8) {
      case 0:
        create(reader, instance);
        break;
      case 1:
        capi::destroy(instance);  // null too
        instance = nullptr;
        break;
      case 2:
        static_cast<void>(capi::subscribe(
            instance, [](void* user, const char*) { ++*static_cast<int*>(user); }, &events));
        break;
      case 3:
        static_cast<void>(capi::subscribe(instance, nullptr, nullptr));
        break;
      case 4:
        capi::free_string(capi::call(instance, nullptr));
        break;
      case 5:
        capi::free_string(nullptr);
        break;
      default:
        call(reader, instance);
    }
  }
  for (Instance* instance : instances) capi::destroy(instance);
}

}  // namespace outrider::fuzz
