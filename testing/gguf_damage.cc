#include "testing/gguf_damage.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <system_error>
#include <utility>

#include "testing/gguf_file.h"

namespace outrider::testing {
namespace {

Result<std::string> read_all(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return not_found("'" + path + "' cannot be opened");
  std::string bytes;
  char buffer[65536];
  std::size_t n = 0;
  while ((n = std::fread(buffer, 1, sizeof buffer, file)) > 0) bytes.append(buffer, n);
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return internal_error("'" + path + "' cannot be read");
  return bytes;
}

Status write_all(const std::string& path, const std::string& bytes) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file.ok()) return file.status();
  OUTRIDER_RETURN_IF_ERROR(file->write(bytes.data(), bytes.size()));
  return file->commit(/*durable=*/false);
}

// The vocabulary's last text becomes that of the one before.
void repeat_a_token(gguf_context* gguf) {
  constexpr const char* kKey = "tokenizer.ggml.tokens";
  const std::int64_t id = gguf_find_key(gguf, kKey);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < gguf_get_arr_n(gguf, id); ++i) {
    texts.emplace_back(gguf_get_arr_str(gguf, id, i));
  }
  texts.back() = texts[texts.size() - 2];
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  gguf_set_arr_str(gguf, kKey, pointers.data(), pointers.size());
}

// GPT-2's tokenizer as ChatGLM 4 has it, which has no token for a text's beginning of its own, but
// is to add one.
void add_missing_token(gguf_context* gguf) {
  gguf_set_val_str(gguf, "tokenizer.ggml.model", "gpt2");
  gguf_set_val_str(gguf, "tokenizer.ggml.pre", "chatglm-bpe");
  const char* merge = "a b";
  gguf_set_arr_str(gguf, "tokenizer.ggml.merges", &merge, 1);
  gguf_remove_key(gguf, "tokenizer.ggml.bos_token_id");
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", true);
}

// "GGUF", a version, a number of tensors and of metadata entries, and nothing after it.
std::string bare_header(std::uint32_t version, std::uint64_t n_tensors, std::uint64_t n_kv) {
  std::string bytes = GGUF_MAGIC;
  bytes.append(reinterpret_cast<const char*>(&version), sizeof version);
  bytes.append(reinterpret_cast<const char*>(&n_tensors), sizeof n_tensors);
  bytes.append(reinterpret_cast<const char*>(&n_kv), sizeof n_kv);
  return bytes;
}

}  // namespace

Status copy_changed(const std::string& from, const std::string& to,
                    const std::function<void(gguf_context*)>& change, const std::string& left_out) {
  const Result<GgufReader> reader = GgufReader::open(from);
  if (!reader.ok()) return reader.status();
  GgufHandle metadata(gguf_init_empty());
  gguf_set_kv(metadata.get(), reader->metadata());
  change(metadata.get());
  std::vector<TensorInfo> tensors;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < reader->tensors().size(); ++i) {
    if (reader->tensors()[i].name == left_out) continue;
    tensors.push_back(reader->tensors()[i]);
    indices.push_back(i);
  }
  if (!left_out.empty() && tensors.size() == reader->tensors().size()) {
    return invalid_argument("'" + from + "' has no tensor '" + left_out + "'");
  }
  const TensorSource source = [&](std::size_t index, std::vector<std::uint8_t>& data) {
    return reader->read_tensor(indices[index], data);
  };
  return write_gguf(to, metadata.get(), tensors, source, /*durable=*/false);
}

Status copy_truncated(const std::string& from, const std::string& to, std::uint64_t bytes) {
  Result<std::string> data = read_all(from);
  if (!data.ok()) return data.status();
  data->resize(std::min<std::size_t>(data->size(), bytes));
  return write_all(to, *data);
}

Status copy_with_byte(const std::string& from, const std::string& to, std::uint64_t offset,
                      std::uint8_t value) {
  Result<std::string> data = read_all(from);
  if (!data.ok()) return data.status();
  if (offset >= data->size()) {
    return invalid_argument("'" + from + "' has only " + std::to_string(data->size()) + " bytes");
  }
  (*data)[offset] = static_cast<char>(value);
  return write_all(to, *data);
}

Status copy_with_string(const std::string& from, const std::string& to, const std::string& key,
                        const std::string& value) {
  return copy_changed(
      from, to,
      [&](gguf_context* metadata) { gguf_set_val_str(metadata, key.c_str(), value.c_str()); }, "");
}

Status copy_without_key(const std::string& from, const std::string& to, const std::string& key) {
  bool found = false;
  OUTRIDER_RETURN_IF_ERROR(copy_changed(
      from, to,
      [&](gguf_context* metadata) { found = gguf_remove_key(metadata, key.c_str()) >= 0; }, ""));
  return found ? Status() : invalid_argument("'" + from + "' has no metadata '" + key + "'");
}

Status copy_without_tensor(const std::string& from, const std::string& to,
                           const std::string& name) {
  return copy_changed(
      from, to, [](gguf_context*) {}, name);
}

Result<std::vector<BadModelFile>> write_bad_model_files(const std::string& good,
                                                        const std::string& folder) {
  const Result<GgufReader> reader = GgufReader::open(good);
  if (!reader.ok()) return reader.status();
  const std::uint64_t size = reader->file_bytes();
  const std::uint64_t header = gguf_get_data_offset(reader->metadata());

  std::vector<BadModelFile> files;
  Status status;
  const auto add = [&](const char* what, const char* name,
                       const std::function<Status(const std::string& path)>& write) {
    files.push_back({what, folder + "/" + name});
    if (status.ok()) status = write(files.back().path);
  };
  const auto bytes = [](const std::string& content) {
    return [content](const std::string& path) { return write_all(path, content); };
  };
  const auto cut = [&](std::uint64_t keep) {
    return [&good, keep](const std::string& path) { return copy_truncated(good, path, keep); };
  };
  add("an empty file", "empty.gguf", bytes(""));
  add("a text file", "text.gguf", bytes("Once upon a time there was no model.\n"));
  add("the magic alone", "magic.gguf", bytes(GGUF_MAGIC));
  add("a version from the future", "version.gguf", bytes(bare_header(77, 0, 0)));
  add("a header that declares more than there is", "declares.gguf",
      bytes(bare_header(GGUF_VERSION, 1000, 1000)));
  add("a GGUF without anything in it", "bare.gguf", bytes(bare_header(GGUF_VERSION, 0, 0)));
  add("a file cut in its header", "cut-header.gguf", cut(header / 2));
  add("a file cut in its tensors", "cut-tensors.gguf", cut((header + size) / 2));
  // The last tensor may be followed by padding, so cut more than that.
  add("a file cut just before its end", "cut-end.gguf", cut(size - GGUF_DEFAULT_ALIGNMENT - 1));
  add("a model of an unknown architecture", "architecture.gguf", [&](const std::string& path) {
    return copy_with_string(good, path, "general.architecture", "no-such-architecture");
  });
  add("a model without a tensor that it needs", "tensor.gguf", [&](const std::string& path) {
    return copy_without_tensor(good, path, "output_norm.weight");
  });
  add("a model without metadata that it needs", "key.gguf", [&](const std::string& path) {
    return copy_without_key(good, path, "llama.embedding_length");
  });
  add("a folder", "folder.gguf", [](const std::string& path) {
    std::error_code error;
    std::filesystem::create_directory(path, error);
    return error ? internal_error("'" + path + "' cannot be made") : Status();
  });
  if (!status.ok()) return status;
  return files;
}

Result<std::vector<BadModelFile>> write_models_that_abort(const std::string& good,
                                                          const std::string& folder) {
  std::vector<BadModelFile> files;
  Status status;
  const auto add = [&](const char* what, const std::string& name,
                       const std::function<void(gguf_context*)>& change) {
    files.push_back({what, folder + "/" + name});
    if (status.ok()) status = copy_changed(good, files.back().path, change, "");
  };
  for (const std::uint32_t layers : {0U, 513U, 65537U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
    add("a wrong number of layers", "layers-" + std::to_string(layers) + ".gguf",
        [layers](gguf_context* gguf) { gguf_set_val_u32(gguf, "llama.block_count", layers); });
  }
  for (const float epsilon : {-1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    add("a wrong epsilon", epsilon < 0.0f ? "epsilon-1.gguf" : "epsilon-nan.gguf",
        [epsilon](gguf_context* gguf) {
          gguf_set_val_f32(gguf, "llama.attention.layer_norm_rms_epsilon", epsilon);
        });
  }
  add("more prediction layers than layers", "prediction.gguf",
      [](gguf_context* gguf) { gguf_set_val_u32(gguf, "llama.nextn_predict_layers", 100); });
  add("a text twice in the vocabulary", "tokens.gguf", repeat_a_token);
  add("a token added that is not there", "added.gguf", add_missing_token);
  add("an unknown scaling of positions", "scaling.gguf",
      [](gguf_context* gguf) { gguf_set_val_str(gguf, "llama.rope.scaling.type", "dynamic"); });
  const auto numbers = [&](const char* what, const std::string& name,
                           const std::vector<std::pair<const char*, std::uint32_t>>& values) {
    add(what, name, [values](gguf_context* gguf) {
      for (const auto& [key, value] : values) gguf_set_val_u32(gguf, key, value);
    });
  };
  numbers("experts used that are not there", "experts-none.gguf", {{"llama.expert_used_count", 2}});
  numbers("more experts used than there are", "experts-used.gguf",
          {{"llama.expert_count", 4}, {"llama.expert_used_count", 5}});
  numbers("experts of which none is used", "experts-unused.gguf",
          {{"llama.expert_count", 4}, {"llama.expert_used_count", 0}});
  numbers("too many experts", "experts-1025.gguf",
          {{"llama.expert_count", 1025}, {"llama.expert_used_count", 1}});
  numbers("groups of experts without experts", "experts-no-groups.gguf",
          {{"llama.expert_group_count", 2}});
  numbers(
      "as many groups as experts", "experts-groups.gguf",
      {{"llama.expert_count", 4}, {"llama.expert_used_count", 1}, {"llama.expert_group_count", 4}});
  numbers("groups that are not of one size", "experts-uneven.gguf",
          {{"llama.expert_count", 8},
           {"llama.expert_used_count", 1},
           {"llama.expert_group_count", 3},
           {"llama.expert_group_used_count", 1}});
  numbers("all groups of experts used", "experts-all-groups.gguf",
          {{"llama.expert_count", 8},
           {"llama.expert_used_count", 1},
           {"llama.expert_group_count", 4},
           {"llama.expert_group_used_count", 4}});
  if (!status.ok()) return status;
  return files;
}

}  // namespace outrider::testing
