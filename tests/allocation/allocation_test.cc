// Memory that runs out at each of the first 2,000 allocations of our own code: an error, no leak,
// no abort, and no other text afterwards.
//
// This program has an operator new of its own, which throws at the nth allocation after it was
// armed: on the calling thread only, or on whichever thread comes to it. It also counts what is
// allocated and not freed, so that each round must leave what it found. What llama.cpp allocates is
// no part of it: the models are hand-written numbers.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/completion_json.h"
#include "capi/boundary.h"
#include "draft/ngram/ngram_context.h"
#include "serve/events.h"
#include "testing/fake_loader.h"
#include "testing/sanitized.h"
#include "testing/suffix_file.h"
#include "testing/tiny_dir.h"

namespace {

// Zero when nothing is to fail. Process-wide, since operator new has no other place.
std::atomic<std::int64_t> left_anywhere{0};
thread_local std::int64_t left_here = 0;
std::atomic<std::int64_t> live{0};
std::atomic<std::int64_t> failed{0};

bool fails_now() {
  if (left_here > 0 && --left_here == 0) {
    ++failed;
    return true;
  }
  if (left_anywhere.load() > 0 && left_anywhere.fetch_sub(1) == 1) {
    ++failed;
    return true;
  }
  return false;
}

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (fails_now()) return nullptr;
  if (size == 0) size = 1;
  void* const memory =
      alignment == 0
          ? std::malloc(size)
          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory != nullptr) ++live;
  return memory;
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* const memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  --live;
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t n) { return allocate_or_throw(n, 0); }
void* operator new[](std::size_t n) { return allocate_or_throw(n, 0); }
void* operator new(std::size_t n, std::align_val_t a) {
  return allocate_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return allocate_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 0); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 0); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { release(p); }

namespace outrider::capi {
namespace {

using testing::FakeLoader;

constexpr int kAllocations = 2000;
// All of them take the two tests 380 s together with the address sanitizer.
constexpr int kStride = testing::kSanitized ? 5 : 1;
constexpr int kRounds = (kAllocations + kStride - 1) / kStride;

// What a client does, without an allocation of its own: texts are fixed.
constexpr const char* kConfig =
    R"({"slots":2,"model":{"path":"target","ctx":64,"batch":24},"draft":{"path":"draft",)"
    R"("ctx":64,"batch":24}})";
constexpr const char* kCalls[] = {
    R"({"jsonrpc":"2.0","id":1,"method":"system.status","params":{"wait_ms":20000}})",
    R"({"jsonrpc":"2.0","id":1,"method":"system.methods"})",
    R"({"jsonrpc":"2.0","id":1,"method":"tokenize","params":{"text":"abc","with_pieces":true}})",
    R"({"jsonrpc":"2.0","id":1,"method":"detokenize","params":{"tokens":[1,2]}})",
    R"({"jsonrpc":"2.0","id":1,"method":"completion.start","params":{"prompt":"abcabc",)"
    R"("max_tokens":6,"seed":1,"temp":1,"stop":["zz"],"logprobs":2,"logit_bias":{"1":0.5}}})",
    R"({"jsonrpc":"2.0","id":1,"method":"completion.poll","params":{"id":1,"wait_ms":100}})",
    R"({"jsonrpc":"2.0","id":1,"method":"completion.run","params":{"prompt":"abca",)"
    R"("max_tokens":6,"temp":1}})",
    R"([{"jsonrpc":"2.0","id":1,"method":"stats"},{"jsonrpc":"2.0","id":2,"method":"nothing"}])",
    R"({"jsonrpc":"2.0","id":1,"method":"completion.cancel","params":{"id":2}})",
    R"({"jsonrpc":"2.0","id":1,"method":"model.load","params":{"role":"drafter",)"
    R"("drafter":"suffix","path":"STORE"}})",
    R"({"jsonrpc":"2.0","id":1,"method":"system.status","params":{"wait_ms":20000}})",
    R"({"jsonrpc":"2.0","id":1,"method":"completion.run","params":{"prompt":"abcabc",)"
    R"("max_tokens":8,"temp":1,"speculative":{"drafters":["suffix/recycle","draft-model"]}}})",
    R"({"jsonrpc":"2.0","id":1,"method":"model.unload","params":{"role":"drafter",)"
    R"("drafter":"suffix"}})",
    R"({"jsonrpc":"2.0","id":1,"method":"model.unload","params":{"role":"draft"}})",
    R"({"jsonrpc":"2.0","id":1,"method":"completion.run","params":{"prompt":"a","top_p":7}})",
    R"({"jsonrpc":"2.0","id":1)"};

// The calls with a store that is there. Made once, while nothing fails.
const std::vector<std::string>& calls() {
  static const testing::TempDir folder;
  static const std::vector<std::string> made = [] {
    const std::string store = folder.file("store");
    const testing::FakeVocabulary vocabulary(12);
    testing::write_suffix_store(store, tokenizer_id(vocabulary), {{0, 1, 2, 0, 1, 2, 3, 4, 5}});
    std::vector<std::string> texts;
    for (std::string text : kCalls) {
      const std::size_t place = text.find("STORE");
      if (place != std::string::npos) text.replace(place, 5, store);
      texts.push_back(std::move(text));
    }
    return texts;
  }();
  return made;
}

// The instance at work, null while there is none.
std::mutex at_work_mutex;
Instance* at_work = nullptr;
std::atomic<int> freed_at_work{0};

void set_at_work(Instance* instance) {
  const std::lock_guard<std::mutex> lock(at_work_mutex);
  at_work = instance;
}

// Freeing a model takes a while, so the runtime must be of use to others meanwhile. Where it is
// not, this waits for ever. Nothing fails in it.
void ask_while_a_model_is_freed() {
  const std::int64_t here = std::exchange(left_here, 0);
  const std::int64_t anywhere = left_anywhere.exchange(0);
  {
    const std::lock_guard<std::mutex> lock(at_work_mutex);
    if (at_work != nullptr) {
      std::thread([] {
        free_string(call(at_work, R"({"jsonrpc":"2.0","id":1,"method":"stats"})"));
      }).join();
      ++freed_at_work;
    }
  }
  left_here = here;
  left_anywhere.store(anywhere);
}

std::unique_ptr<FakeLoader> make_loader() {
  std::unique_ptr<FakeLoader> loader = std::make_unique<FakeLoader>();
  loader->memory().on_free(ask_while_a_model_is_freed);
  loader->add("target", {.seed = 1});
  loader->add("draft", {.seed = 1, .noise = 0.5f});
  return loader;
}

struct Heard {
  std::atomic<int> events{0};
  std::atomic<int> lost{0};
};

void on_event(void* user, const char* text) {
  Heard& heard = *static_cast<Heard*>(user);
  ++heard.events;
  if (std::string_view(text) == R"({"event":"lost"})") ++heard.lost;
}

// The text in an answer; empty where there is none.
std::string text_of(std::string_view answer) {
  constexpr std::string_view kKey = R"("text":")";
  const std::size_t at = answer.find(kKey);
  if (at == std::string_view::npos) return "";
  const std::size_t begin = at + kKey.size();
  return std::string(answer.substr(begin, answer.find('"', begin) - begin));
}

// Whatever failed before, a prompt that begins like earlier ones gets the text that it gets when
// nothing has failed, which the first call takes down; or an error, where no model was loaded.
// Nothing fails in it.
bool says_the_same(Instance* instance) {
  static std::string expected;
  const std::int64_t here = std::exchange(left_here, 0);
  const std::int64_t anywhere = left_anywhere.exchange(0);
  bool same = true;
  {
    char* const answer =
        call(instance, R"({"jsonrpc":"2.0","id":1,"method":"completion.run","params":)"
                       R"({"prompt":"abcabcd","max_tokens":12,"seed":1,"temp":1}})");
    const std::string text = text_of(answer);
    free_string(answer);
    if (expected.empty()) expected = text;
    same = !expected.empty() && (text.empty() || text == expected);
  }
  left_here = here;
  left_anywhere.store(anywhere);
  return same;
}

// Returns what is wrong, or null. `loader` must be fresh.
const char* use_the_library(std::unique_ptr<FakeLoader> loader) {
  Heard heard;
  char* error = nullptr;
  Instance* const instance = create(kConfig, &error, std::move(loader));
  const bool reason = error != nullptr;
  free_string(error);
  if (instance == nullptr) return reason ? nullptr : "no instance and no reason";
  set_at_work(instance);
  const int subscribed = subscribe(instance, &on_event, &heard);
  const char* wrong = subscribed == 0 || subscribed == ENOMEM ? nullptr : "subscribe";
  for (const std::string& request : calls()) {
    char* const answer = call(instance, request.c_str());
    if (answer == nullptr || (answer[0] != '{' && answer[0] != '[')) wrong = request.c_str();
    free_string(answer);
  }
  if (!says_the_same(instance)) wrong = "another text after a failure";
  set_at_work(nullptr);
  destroy(instance);
  return wrong;
}

TEST(Allocation, FailingOnTheCallersThreadIsAnErrorAndLeavesNothing) {
  ASSERT_EQ(use_the_library(make_loader()), nullptr) << "when nothing fails";
  int rounds_that_failed = 0;
  for (int n = 1; n <= kAllocations; n += kStride) {
    const std::int64_t before = live.load();
    failed.store(0);
    std::unique_ptr<FakeLoader> loader = make_loader();
    left_here = n;
    const char* const wrong = use_the_library(std::move(loader));
    left_here = 0;
    ASSERT_EQ(wrong, nullptr) << "at allocation " << n;
    ASSERT_EQ(live.load(), before) << "allocation " << n << " left something behind";
    rounds_that_failed += failed.load() > 0 ? 1 : 0;
  }
  EXPECT_GT(rounds_that_failed, kRounds / 2) << "there must be allocations to fail";
}

TEST(Allocation, FailingOnAnyThreadIsAnErrorAndLeavesNothing) {
  freed_at_work.store(0);
  ASSERT_EQ(use_the_library(make_loader()), nullptr) << "when nothing fails";
  int rounds_that_failed = 0;
  for (int n = 1; n <= kAllocations; n += kStride) {
    const std::int64_t before = live.load();
    failed.store(0);
    std::unique_ptr<FakeLoader> loader = make_loader();
    left_anywhere.store(n);
    const char* const wrong = use_the_library(std::move(loader));
    left_anywhere.store(0);
    ASSERT_EQ(wrong, nullptr) << "at allocation " << n;
    ASSERT_EQ(live.load(), before) << "allocation " << n << " left something behind";
    rounds_that_failed += failed.load() > 0 ? 1 : 0;
  }
  EXPECT_GT(rounds_that_failed, kRounds / 2) << "there must be allocations to fail";
  EXPECT_GT(freed_at_work.load(), kRounds / 20) << "models must be freed while others ask";
}

// As the header of the C interface says: who listens knows that it has to ask.
TEST(Allocation, AnEventForWhichThereIsNoMemoryIsToldOfAsLost) {
  int n_lost = 0;
  for (std::int64_t n = 1; n <= 20; ++n) {
    int n_heard = 0;
    std::string heard;
    {
      EventThread thread;
      thread.subscribe([&](const RuntimeEvent& event) {
        ++n_heard;
        heard = json::encode(api::event_json(event));
      });
      left_here = n;
      thread.tell([] {
        RuntimeEvent event;
        event.completion.emplace();
        event.completion->tokens.emplace_back();
        return event;
      });
      left_here = 0;
    }  // gives out what waits
    ASSERT_EQ(n_heard, 1) << "allocation " << n;
    n_lost += heard == R"({"event":"lost"})" ? 1 : 0;
  }
  EXPECT_GT(n_lost, 0) << "there must be allocations to fail";
  EXPECT_LT(n_lost, 20);
}

// Else a part of one text would be guessed from in the next one.
TEST(Allocation, OfATextWhoseCountingFailsTheNextOneSeesNothing) {
  std::vector<Token> first;
  for (Token token = 0; token < 200; ++token) first.push_back(token);
  const std::vector<Token> second = {7, 8, 9, 7, 8, 9};
  int n_failed = 0;
  for (std::int64_t n = 1; n <= 200; ++n) {
    NgramContext context;
    left_here = n;
    try {
      context.extend(first);
    } catch (const std::bad_alloc&) {
      ++n_failed;
    }
    left_here = 0;
    ASSERT_EQ(context.check_integrity(), "") << "allocation " << n;
    context.cut(0);
    context.extend(second);
    ASSERT_EQ(context.check_integrity(), "") << "allocation " << n;
  }
  EXPECT_GT(n_failed, 10) << "there must be allocations to fail";
}

}  // namespace
}  // namespace outrider::capi
