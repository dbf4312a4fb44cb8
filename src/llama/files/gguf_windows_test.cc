#include "llama/files/gguf_windows.h"

#include <gguf.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "llama/files/gguf_header.h"
#include "testing/gguf_damage.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {
namespace {

struct FreeGguf {
  void operator()(gguf_context* gguf) const { gguf_free(gguf); }
};

// What a file says of its layers.
class Said {
 public:
  Said(std::string architecture, std::uint32_t n_layer)
      : gguf_(gguf_init_empty()), architecture_(std::move(architecture)) {
    set("block_count", n_layer);
  }

  Said& set(const std::string& key, std::uint32_t value) {
    gguf_set_val_u32(gguf_.get(), (architecture_ + "." + key).c_str(), value);
    return *this;
  }
  Said& set_wide(const std::string& key, std::int64_t value) {
    gguf_set_val_i64(gguf_.get(), (architecture_ + "." + key).c_str(), value);
    return *this;
  }
  Said& pattern(std::uint32_t period) { return set("attention.sliding_window_pattern", period); }
  // "wf": the first layer has a window, the second sees all.
  Said& pattern(const std::string& layers, gguf_type type = GGUF_TYPE_BOOL) {
    const std::string key = architecture_ + ".attention.sliding_window_pattern";
    std::vector<std::int8_t> bytes;
    std::vector<std::int32_t> numbers;
    for (const char layer : layers) {
      bytes.push_back(layer == 'w' ? 1 : 0);
      numbers.push_back(layer == 'w' ? 1 : 0);
    }
    const void* data = type == GGUF_TYPE_BOOL ? static_cast<const void*>(bytes.data())
                                              : static_cast<const void*>(numbers.data());
    gguf_set_arr_data(gguf_.get(), key.c_str(), type, data, layers.size());
    return *this;
  }

  std::string wrong() const { return wrong_windows(gguf_.get(), architecture_); }
  void expect_right() const { EXPECT_EQ(wrong(), "") << architecture_; }
  void expect_none() const {
    EXPECT_EQ(wrong(), architecture_ +
                           ".attention.sliding_window_pattern gives no layer a window, but must "
                           "give one to at least one");
  }

 private:
  std::unique_ptr<gguf_context, FreeGguf> gguf_;
  std::string architecture_;
};

TEST(GgufWindows, AnArchitectureWithWindowsHasALayerWithOne) {
  for (const char* const name :
       {"cohere2", "exaone-moe", "gemma2", "gemma3n", "gpt-oss", "muse-glimmer", "llama4"}) {
    Said(name, 4).expect_right();
    Said(name, 4).pattern(0).expect_right();
    Said(name, 4).pattern(2).expect_right();
    Said(name, 4).pattern(9).expect_right();
    Said(name, 4).pattern("fffw").expect_right();
    Said(name, 4).pattern("fffw", GGUF_TYPE_INT32).expect_right();
    Said(name, 4).pattern(1).expect_none();
    Said(name, 4).pattern("ffff").expect_none();
    Said(name, 4).pattern("ffff", GGUF_TYPE_UINT32).expect_none();
    Said(name, 4).pattern("ffffw").expect_none();
  }
  Said("cohere2moe", 2).expect_right();
  Said("cohere2moe", 1).expect_none();
  for (const char* const name : {"granite_swa", "maple", "mimo2", "spark2_5", "step35"}) {
    Said(name, 4).pattern("wwfw").expect_right();
    Said(name, 4).pattern("ffff").expect_none();
    Said(name, 4).expect_right();
    Said(name, 4).pattern(1).expect_right();
  }
}

TEST(GgufWindows, WhereTheFileGivesNoWindowNoneIsNeeded) {
  const char* const size = "attention.sliding_window";
  for (const char* const name :
       {"afmoe", "gemma3", "laguna", "mellum", "olmo2", "plamo3", "smallthinker"}) {
    Said(name, 4).pattern(1).expect_right();
    Said(name, 4).set(size, 0).pattern(1).expect_right();
    Said(name, 4).set(size, 512).expect_right();
    Said(name, 4).set(size, 512).pattern(1).expect_none();
    Said(name, 4).set(size, 512).pattern("ffff").expect_none();
  }
  Said("llama4", 4).set(size, 0).pattern(1).expect_right();
  Said("exaone4", 30).set(size, 4096).pattern(1).expect_right();
  Said("exaone4", 64).pattern(1).expect_none();
  for (const char* const name : {"llama", "phi3", "lfm2", "qwen3", "of-tomorrow"}) {
    Said(name, 4).set(size, 512).pattern(1).expect_right();
  }
  Said("gemma2", 0).pattern(1).expect_right();
}

// Sizes of the real models: E2B has 35 layers of which 20 share, E4B 42 and 18.
TEST(GgufWindows, LayersWithoutCellsUseThoseOfALayerOfTheirKind) {
  const auto every = [](std::size_t period, std::size_t n) {
    std::string layers;
    for (std::size_t i = 1; i <= n; ++i) layers += i % period == 0 ? 'f' : 'w';
    return layers;
  };
  const char* const shared = "attention.shared_kv_layers";
  Said("gemma4", 35).pattern(every(5, 35)).set(shared, 20).expect_right();
  Said("gemma4", 42).pattern(every(6, 42)).set(shared, 18).expect_right();
  Said("gemma4", 60).pattern(every(6, 60)).expect_right();
  Said("gemma4", 4).pattern("wfwf").set(shared, 2).expect_right();
  Said("gemma4", 4).pattern("wwww").set(shared, 2).expect_right();
  for (const std::uint32_t n : {3U, 4U, 5U, 0xFFFFFFFFU}) {
    EXPECT_EQ(Said("gemma4", 4).pattern("wfwf").set(shared, n).wrong(),
              "gemma4.attention.shared_kv_layers is " + std::to_string(n) +
                  ", but must be at most block_count - 2, which is 2");
  }
  EXPECT_EQ(Said("gemma4", 4).pattern("fwwf").set(shared, 2).wrong(),
            "gemma4.attention.sliding_window_pattern gives layer 2 a window, but must do the same "
            "with layer 0, whose cells it uses");
  EXPECT_EQ(Said("gemma4", 4).pattern("wwwf").set(shared, 2).wrong(),
            "gemma4.attention.sliding_window_pattern gives layer 3 no window, but must do the same "
            "with layer 1, whose cells it uses");
  Said("gemma3n", 35).expect_right();
  Said("gemma3n", 30).pattern(every(5, 30)).expect_right();
  Said("gemma3n", 20).pattern(6).expect_right();
  EXPECT_NE(Said("gemma3n", 30).pattern(6).wrong(), "");
}

TEST(GgufWindows, ANumberThatIsNoCountIsAsIfItWereNotSaid) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  Said("gemma2", 4).set_wide("nextn_predict_layers", kLeast).expect_right();
  Said("gemma4", 4)
      .pattern("wwfw")
      .set_wide("nextn_predict_layers", kLeast)
      .set_wide("attention.shared_kv_layers", kLeast)
      .expect_right();
}

// llama.cpp aborts when it makes a context of such a file.
TEST(GgufWindows, AFileWhosePatternLeavesNoWindowIsRefused) {
  const testing::TempDir dir;
  const std::string good = dir.file("good.gguf");
  const std::string bad = dir.file("bad.gguf");
  ASSERT_TRUE(
      testing::write_tiny_gguf(good, {.architecture = testing::TinyArchitecture::kSlidingWindow})
          .ok());
  EXPECT_TRUE(read_gguf_header(good).ok());
  const auto change = [](gguf_context* gguf) {
    gguf_set_val_u32(gguf, "olmo2.attention.sliding_window_pattern", 1);
  };
  ASSERT_TRUE(testing::copy_changed(good, bad, change, "").ok());
  const Status status = read_gguf_header(bad).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("'" + bad + "' is damaged: olmo2.attention.sliding_window"),
            std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace outrider::llama
