// What a model file says about itself is read in this process, before any loader sees it: so it
// must survive all files. What llama.cpp does with the file behind that happens in a process of its
// own (tests/isolated_target_test.cc).
//
// An input that begins with 'A' is no file but what one says: a byte for the architecture, then
// three bytes for each value: key, type, number. Otherwise another architecture would have to come
// about in its name, the name's length and each key at once.
#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "fuzz/targets.h"
#include "llama/files/gguf_family.h"
#include "llama/files/gguf_header.h"
#include "testing/tiny_dir.h"

namespace outrider::fuzz {
namespace {

constexpr std::array<const char*, 28> kArchitectures{
    "llama",  "cohere2",      "cohere2moe", "exaone-moe", "gemma2", "gemma3n",      "gpt-oss",
    "gemma4", "muse-glimmer", "mimo2",      "step35",     "afmoe",  "gemma3",       "laguna",
    "olmo2",  "plamo3",       "llama4",     "exaone4",    "lfm2",   "smallthinker", "mamba",
    "phi3",   "deepseek2",    "mistral4",   "qwen3moe",   "eagle3", "dflash",       "hunyuan_vl"};
constexpr std::array<const char*, 30> kKeys{"block_count",
                                            "nextn_predict_layers",
                                            "embedding_length",
                                            "context_length",
                                            "feed_forward_length",
                                            "attention.head_count",
                                            "attention.head_count_kv",
                                            "attention.key_length",
                                            "attention.value_length",
                                            "attention.key_length_swa",
                                            "attention.value_length_swa",
                                            "attention.key_length_mla",
                                            "attention.value_length_mla",
                                            "attention.sliding_window",
                                            "attention.sliding_window_pattern",
                                            "attention.shared_kv_layers",
                                            "attention.recurrent_layers",
                                            "attention.causal",
                                            "attention.layer_norm_rms_epsilon",
                                            "attention.temperature_length",
                                            "attention.temperature_scale",
                                            "full_attention_interval",
                                            "expert_count",
                                            "expert_used_count",
                                            "expert_group_count",
                                            "expert_group_used_count",
                                            "rope.dimension_count",
                                            "rope.freq_base",
                                            "rope.scaling.type",
                                            "attn_logit_softcapping"};

// gguf.h's numbers of types.
constexpr std::uint32_t kUint32 = 4, kFloat = 6, kBool = 7, kString = 8, kArray = 9, kInt64 = 11;

class Said {
 public:
  void text(std::string_view text) {
    number<std::uint64_t>(text.size());
    bytes_ += text;
  }
  template <typename T>
  void number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void value(std::uint8_t type, std::uint8_t given) {
    switch (type % 6) {
      case 0:
        number(kUint32);
        number<std::uint32_t>(given < 250 ? given : 0xFFFFFFFFU - (255U - given));
        break;
      case 1:
        number(kInt64);
        number<std::int64_t>(
            given < 250 ? given - 5 : std::numeric_limits<std::int64_t>::min() + (255 - given));
        break;
      case 2:
        number(kFloat);
        number<float>(static_cast<float>(given) / 16.0f);
        break;
      case 3:
        number(kBool);
        number<std::uint8_t>(given % 2);
        break;
      case 4:
        number(kString);
        text(given % 2 == 0 ? "longrope" : "yarn");
        break;
      default:
        number(kArray);
        number(given % 2 == 0 ? kBool : kUint32);
        number<std::uint64_t>(given % 16);
        for (int i = 0; i < given % 16; ++i) {
          const std::uint8_t item = static_cast<std::uint8_t>((given >> (i % 5)) & 3);
          given % 2 == 0 ? number<std::uint8_t>(item % 2) : number<std::uint32_t>(item);
        }
    }
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string file_that_says(Reader reader) {
  const std::string architecture = kArchitectures[reader.below(kArchitectures.size())];
  Said values;
  std::int64_t n_values = 1;
  values.text("general.architecture");
  values.number(kString);
  values.text(architecture);
  std::uint64_t told = 0;  // a key twice is no file
  while (!reader.done()) {
    const std::size_t key = reader.below(kKeys.size());
    const std::uint8_t type = reader.byte();
    const std::uint8_t given = reader.byte();
    if ((told >> key & 1) != 0) continue;
    told |= std::uint64_t{1} << key;
    values.text(architecture + "." + kKeys[key]);
    values.value(type, given);
    ++n_values;
  }
  Said file;
  file.number<std::uint32_t>(0x46554747);  // "GGUF"
  file.number<std::uint32_t>(3);
  file.number<std::int64_t>(0);  // tensors
  file.number(n_values);
  return file.bytes() + values.bytes();
}

}  // namespace

void gguf(Bytes input) {
  static const testing::TempDir folder;
  Reader reader(input);
  const std::string bytes =
      reader.byte() == 'A' ? file_that_says(reader) : std::string(text(input));
  // The second name is that of a first file of several.
  for (const char* name : {"model.gguf", "model-00001-of-00002.gguf"}) {
    const std::string path = folder.file(name);
    testing::write_bytes(path, bytes);
    static_cast<void>(llama::read_gguf_family(path));
    const Result<llama::GgufHeader> header = llama::read_gguf_header(path);
    if (!header.ok()) continue;
    static_cast<void>(llama::check_is_model(path, *header));
    static_cast<void>(header->k_elements() + header->v_elements());
    if (header->file_bytes != bytes.size()) violated("another file's size");
    if (header->tensor_bytes > bytes.size()) violated("tensors beyond the end of the file");
  }
}

}  // namespace outrider::fuzz
