#include "llama/files/gguf_head_sizes.h"

#include <gguf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "llama/gguf/integers.h"

namespace outrider::llama {
namespace {

// Values as large as keys, and positions in all of both.
constexpr std::string_view kAllOneSize[] = {
    "apertus",   "arcee",      "arctic",     "baichuan",     "chameleon",      "codeshell",
    "cogvlm",    "cohere2moe", "dbrx",       "deci",         "deepseek",       "dots1",
    "dream",     "ernie4_5",   "exaone",     "ernie4_5-moe", "exaone-moe",     "exaone4",
    "falcon",    "granite",    "granitemoe", "granite_swa",  "graniteswitch",  "grok",
    "grovemoe",  "hy_v3",      "hunyuan_vl", "hunyuan-moe",  "hunyuan-dense",  "internlm2",
    "jais2",     "llada",      "llada-moe",  "llama",        "llama-embed",    "llama4",
    "maincoder", "mellum",     "minicpm",    "mistral3",     "olmo",           "olmo2",
    "olmoe",     "orion",      "paddleocr",  "plamo",        "pangu-embedded", "qwen2",
    "qwen2moe",  "qwen2vl",    "qwen3",      "qwen3moe",     "qwen3vl",        "qwen3vlmoe",
    "rnd1",      "seed_oss",   "smollm3",    "smallthinker", "starcoder2",     "talkie",
    "xverse"};

// Values as large as keys; positions may be in a part.
constexpr std::string_view kSameValues[] = {
    "afmoe",        "bailingmoe2",    "bitnet",   "bloom",     "chatglm",  "cohere2",
    "glm4",         "command-r",      "glm4moe",  "gpt2",      "gptneox",  "granitehybrid",
    "jais",         "laguna",         "lfm2",     "lfm2moe",   "maple",    "minimax-01",
    "minimax-m2",   "minimax-m3",     "mpt",      "nanbeige",  "nemotron", "nemotron_h",
    "muse-glimmer", "nemotron_h_moe", "openelm",  "phi2",      "phi3",     "phimoe",
    "qwen",         "qwen35",         "refact",   "qwen35moe", "qwen4exp", "qwen3next",
    "spark2_5",     "stablelm",       "starcoder"};

// Positions are in all of a key, or in an even part of it, and in every layer the same.
constexpr std::string_view kPartOfKeys[] = {
    "bailingmoe2", "bitnet",  "chatglm", "cohere2", "command-r",  "gemma",     "gemma2",   "gemma3",
    "glm4",        "glm4moe", "gpt-oss", "gptneox", "minimax-m2", "openelm",   "nemotron", "phi2",
    "phi3",        "phimoe",  "qwen",    "qwen35",  "qwen3next",  "qwen35moe", "stablelm"};

template <std::size_t n>
bool is_one_of(const std::string_view (&names)[n], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

std::string wrong_head_sizes(const gguf_context* gguf, const std::string& architecture) {
  const std::string prefix = architecture + ".";
  const auto number = [&](const char* name, std::int64_t otherwise) {
    return gguf::integer(gguf, prefix + name).value_or(otherwise);
  };
  // Layers with a window may have heads of their own.
  for (const char* name :
       {"attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"}) {
    if (gguf_find_key(gguf, (prefix + name).c_str()) >= 0) return "";
  }
  const std::vector<std::int64_t> heads = gguf::integers(gguf, prefix + "attention.head_count");
  const std::int64_t width = number("embedding_length", 0);
  if (heads.empty() || heads.front() < 1 || width < 1) return "";  // llama.cpp says so
  const std::int64_t size = width / heads.front();
  const std::int64_t keys = number("attention.key_length", size);
  const std::int64_t values = number("attention.value_length", size);
  const std::int64_t rotated = number("rope.dimension_count", keys);
  const std::string of_keys = "the size of a head's keys, which is " + std::to_string(keys);
  const bool all_one_size = is_one_of(kAllOneSize, architecture);
  if (values != keys && (all_one_size || is_one_of(kSameValues, architecture))) {
    return prefix + "attention.value_length is " + std::to_string(values) + ", but must be " +
           of_keys;
  }
  const std::string key = prefix + "rope.dimension_count is " + std::to_string(rotated);
  if (rotated != keys && all_one_size) return key + ", but must be " + of_keys;
  const bool part = rotated >= 0 && rotated <= keys && rotated % 2 == 0;
  if (part || (!all_one_size && !is_one_of(kPartOfKeys, architecture))) return "";
  return key + ", but must be even and at most " + of_keys;
}

}  // namespace outrider::llama
