#include "llama/files/gguf_checks.h"

#include <gguf.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace outrider::llama {
namespace {

using Numbers = std::vector<std::pair<std::string, std::uint32_t>>;

struct Free {
  void operator()(gguf_context* gguf) const { gguf_free(gguf); }
};

// A header of the architecture, with 128 numbers a token in heads of 64.
class Header {
 public:
  explicit Header(std::string architecture)
      : gguf_(gguf_init_empty()), architecture_(std::move(architecture)) {
    set({{"block_count", 4}, {"embedding_length", 128}, {"attention.head_count", 2}});
  }

  Header& set(const Numbers& numbers) {
    for (const auto& [key, value] : numbers) {
      gguf_set_val_u32(gguf_.get(), (architecture_ + "." + key).c_str(), value);
    }
    return *this;
  }
  Header& set_text(const std::string& key, const char* text) {
    gguf_set_val_str(gguf_.get(), (architecture_ + "." + key).c_str(), text);
    return *this;
  }
  Header& set_float(const std::string& key, float value) {
    gguf_set_val_f32(gguf_.get(), (architecture_ + "." + key).c_str(), value);
    return *this;
  }
  Header& set_list(const std::string& key, const std::vector<std::int32_t>& values) {
    gguf_set_arr_data(gguf_.get(), (architecture_ + "." + key).c_str(), GGUF_TYPE_INT32,
                      values.data(), values.size());
    return *this;
  }

  void expect_right() const {
    const Status status = check_gguf_values("m.gguf", gguf_.get(), architecture_);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  void expect_wrong(const std::string& why) const {
    const Status status = check_gguf_values("m.gguf", gguf_.get(), architecture_);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << why;
    EXPECT_NE(status.message().find("'m.gguf' is damaged: " + architecture_ + "." + why),
              std::string::npos)
        << status.message();
  }

 private:
  std::unique_ptr<gguf_context, Free> gguf_;
  std::string architecture_;
};

TEST(GgufChecks, OnlyKnownScalingsOfPositionsAreTaken) {
  for (const char* known : {"none", "linear", "yarn", "longrope"}) {
    Header("llama").set_text("rope.scaling.type", known).expect_right();
  }
  for (const char* unknown : {"", "su", "dynamic", "YARN"}) {
    Header("llama")
        .set_text("rope.scaling.type", unknown)
        .expect_wrong("rope.scaling.type is '" + std::string(unknown) +
                      "', but must be none, linear, yarn or longrope");
  }
}

TEST(GgufChecks, TheNumbersOfExpertsFitEachOther) {
  Header("llama").set({{"expert_count", 0}, {"expert_used_count", 0}}).expect_right();
  Header("llama").set({{"expert_count", 1024}, {"expert_used_count", 8}}).expect_right();
  Header("llama").set({{"expert_count", 8}, {"expert_used_count", 8}}).expect_right();
  const Numbers eight = {{"expert_count", 8}, {"expert_used_count", 2}};
  Header("llama").set(eight).set({{"expert_group_count", 1}}).expect_right();
  Header("llama")
      .set(eight)
      .set({{"expert_group_count", 4}, {"expert_group_used_count", 3}})
      .expect_right();
  Header("llama")
      .set({{"expert_count", 8}})
      .set_list("expert_used_count", {0, 2, 8, 2})
      .expect_right();
  Header("hunyuan-dense").set({{"expert_count", 1}, {"expert_used_count", 1}}).expect_right();
  Header("hunyuan-dense").set({{"expert_count", 1}, {"expert_used_count", 2}}).expect_right();

  Header("llama")
      .set({{"expert_used_count", 1}})
      .expect_wrong("expert_used_count is 1, but must be 0");
  Header("llama")
      .set({{"expert_group_count", 1}})
      .expect_wrong("expert_group_count is 1, but must");
  Header("llama")
      .set({{"expert_count", 1025}, {"expert_used_count", 2}})
      .expect_wrong("expert_count is 1025, but must be from 0 to 1024");
  Header("llama")
      .set({{"expert_count", 8}})
      .expect_wrong("expert_used_count is 0, but must be from 1");
  Header("llama")
      .set({{"expert_count", 8}, {"expert_used_count", 9}})
      .expect_wrong("expert_used_count is 9, but must be from 1 to expert_count, which is 8");
  Header("llama")
      .set({{"expert_count", 8}})
      .set_list("expert_used_count", {2, 2, 9, 2})
      .expect_wrong("expert_used_count is 9");
  Header("llama")
      .set({{"expert_count", 8}})
      .set_list("expert_used_count", {2, -1, 2, 2})
      .expect_wrong("expert_used_count is -1");
  Header("llama")
      .set(eight)
      .set({{"expert_group_count", 8}})
      .expect_wrong("expert_group_count is 8");
  Header("llama")
      .set(eight)
      .set({{"expert_group_count", 3}, {"expert_group_used_count", 1}})
      .expect_wrong("expert_group_count is 3, but must be a divisor of expert_count");
  for (const std::uint32_t used : {0U, 4U, 5U}) {
    Header("llama")
        .set(eight)
        .set({{"expert_group_count", 4}, {"expert_group_used_count", used}})
        .expect_wrong("expert_group_used_count is " + std::to_string(used));
  }
}

TEST(GgufChecks, HeadsHaveTheSizesThatTheArchitectureAsserts) {
  const Numbers narrow_values = {{"attention.value_length", 32}};
  const Numbers narrow_both = {{"attention.key_length", 32}, {"attention.value_length", 32}};
  for (const char* architecture : {"llama", "qwen2", "qwen3", "qwen3moe", "smollm3", "llama4"}) {
    Header(architecture).expect_right();
    Header(architecture).set(narrow_both).expect_right();
    Header(architecture).set(narrow_both).set({{"rope.dimension_count", 32}}).expect_right();
    Header(architecture)
        .set(narrow_values)
        .expect_wrong(
            "attention.value_length is 32, but must be the size of a head's keys, "
            "which is 64");
    Header(architecture)
        .set({{"attention.key_length", 128}})
        .expect_wrong("attention.value_length is 64");
    Header(architecture)
        .set({{"rope.dimension_count", 32}})
        .expect_wrong("rope.dimension_count is 32, but must be the size of a head's keys");
  }
  for (const char* architecture : {"phi3", "gptneox", "glm4"}) {
    Header(architecture).set({{"rope.dimension_count", 32}}).expect_right();
    Header(architecture).set(narrow_values).expect_wrong("attention.value_length is 32");
    Header(architecture)
        .set({{"rope.dimension_count", 66}})
        .expect_wrong("rope.dimension_count is 66");
    Header(architecture)
        .set({{"rope.dimension_count", 33}})
        .expect_wrong("rope.dimension_count is 33, but must be even and at most the size");
  }
}

TEST(GgufChecks, AttentionThatIsScaledByPositionsSaysFromWhereOn) {
  const char* const scale = "attention.temperature_scale";
  const Numbers length = {{"attention.temperature_length", 8192}};
  for (const char* architecture : {"deepseek2", "mistral4"}) {
    Header(architecture).set(length).expect_right();
    Header(architecture).set_float(scale, 0.0f).expect_right();
    Header(architecture).set(length).set_float(scale, 0.1f).expect_right();
    Header(architecture)
        .set_float(scale, 0.1f)
        .expect_wrong("attention.temperature_length must be there");
    Header(architecture)
        .set_float(scale, 0.1f)
        .set({{"attention.temperature_length", 0}})
        .expect_wrong("attention.temperature_length must be there");
  }
  Header("mistral3").set_float(scale, 0.1f).expect_right();
}

TEST(GgufChecks, DeepseekOcrHasOneBaseOfItsPositions) {
  const char* const base = "rope.freq_base";
  Header("deepseek2-ocr").expect_right();
  Header("deepseek2-ocr").set_float(base, 10000.0f).expect_right();
  Header("deepseek2").set_float(base, 50000.0f).expect_right();
  for (const float other : {0.0f, 9999.0f, 50000.0f, std::numeric_limits<float>::quiet_NaN()}) {
    Header("deepseek2-ocr").set_float(base, other).expect_wrong("rope.freq_base is ");
    EXPECT_FALSE(takes_rope_base("deepseek2-ocr", other));
    EXPECT_TRUE(takes_rope_base("deepseek2", other));
  }
}

// Others have heads of two sizes, layers with heads of their own, or no heads.
TEST(GgufChecks, HeadsOfOtherSizesStayWhereNothingIsAsserted) {
  const Numbers two_sizes = {
      {"attention.key_length", 192}, {"attention.value_length", 128}, {"rope.dimension_count", 64}};
  for (const char* architecture : {"deepseek2", "minicpm3", "plm", "mimo2", "of-tomorrow"}) {
    Header(architecture).set(two_sizes).expect_right();
  }
  Header("gemma2").set({{"attention.value_length", 32}}).expect_right();
  Header("mellum")
      .set({{"attention.key_length", 128}, {"attention.key_length_swa", 64}})
      .expect_right();
  Header("llama").set({{"attention.head_count", 0}, {"attention.key_length", 7}}).expect_right();
  Header("llama").set_list("attention.head_count", {2, 4, 2, 4}).expect_right();
}

}  // namespace
}  // namespace outrider::llama
