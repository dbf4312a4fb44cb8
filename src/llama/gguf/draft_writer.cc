#include "llama/gguf/draft_writer.h"

#include <strings.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "llama.h"
#include "llama/gguf/convert_rows.h"
#include "llama/gguf/gguf_file.h"
#include "llama/gguf/layer_cut.h"
#include "llama/gguf/vocabulary_cut.h"
#include "store/atomic_file.h"

namespace outrider::gguf {
namespace {

constexpr const char* kFileType = "general.file_type";

// Matrices that models need as they are, by a part of the name: as llama.cpp's quantiser has it.
constexpr std::string_view kAsTheyAre[] = {
    "_norm.weight",  "ffn_gate_inp", "altup",      "laurel",      "per_layer_model_proj",
    "position_embd", "token_types",  "ssm_conv1d", "shortconv",   "indexer",
    "time_mix_",     "attn_rel_b",   "rope_freqs", "rope_factors"};

// Rows that belong to tokens.
constexpr std::string_view kTokenRows[] = {"token_embd.weight", "output.weight", "output.bias"};

struct NamedType {
  ggml_type type;
  llama_ftype file_type;
};
constexpr NamedType kFileTypes[] = {
    {GGML_TYPE_F32, LLAMA_FTYPE_ALL_F32},          {GGML_TYPE_F16, LLAMA_FTYPE_MOSTLY_F16},
    {GGML_TYPE_BF16, LLAMA_FTYPE_MOSTLY_BF16},     {GGML_TYPE_Q4_0, LLAMA_FTYPE_MOSTLY_Q4_0},
    {GGML_TYPE_Q4_1, LLAMA_FTYPE_MOSTLY_Q4_1},     {GGML_TYPE_Q5_0, LLAMA_FTYPE_MOSTLY_Q5_0},
    {GGML_TYPE_Q5_1, LLAMA_FTYPE_MOSTLY_Q5_1},     {GGML_TYPE_Q8_0, LLAMA_FTYPE_MOSTLY_Q8_0},
    {GGML_TYPE_IQ4_NL, LLAMA_FTYPE_MOSTLY_IQ4_NL}, {GGML_TYPE_IQ4_XS, LLAMA_FTYPE_MOSTLY_IQ4_XS},
    {GGML_TYPE_Q2_K, LLAMA_FTYPE_MOSTLY_Q2_K},     {GGML_TYPE_Q3_K, LLAMA_FTYPE_MOSTLY_Q3_K_S},
    {GGML_TYPE_Q4_K, LLAMA_FTYPE_MOSTLY_Q4_K_S},   {GGML_TYPE_Q5_K, LLAMA_FTYPE_MOSTLY_Q5_K_S},
    {GGML_TYPE_Q6_K, LLAMA_FTYPE_MOSTLY_Q6_K}};

// Weights that are multiplied with, and so may have any type.
bool is_matrix(const TensorInfo& tensor) {
  if (tensor.shape.size() < 2 || !tensor.name.ends_with(".weight")) return false;
  for (const std::string_view part : kAsTheyAre) {
    if (tensor.name.find(part) != std::string::npos) return false;
  }
  return true;
}

bool has_token_rows(const std::string& name) {
  return std::find(std::begin(kTokenRows), std::end(kTokenRows), name) != std::end(kTokenRows);
}

Result<ggml_type> type_of(const std::string& name) {
  std::string names;
  for (const NamedType& known : kFileTypes) {
    if (strcasecmp(ggml_type_name(known.type), name.c_str()) == 0) return known.type;
    names += (names.empty() ? "" : ", ") + std::string(ggml_type_name(known.type));
  }
  return invalid_argument("unknown type of weights '" + name + "'; give one of " + names);
}

// Why the vocabulary of the file cannot be cut, or ok.
Status check_token_rows(const GgufReader& file, const FileVocabulary& vocabulary) {
  const std::int64_t n = vocabulary.size();
  bool has_embedding = false;
  for (const TensorInfo& tensor : file.tensors()) {
    const bool is_tokens = has_token_rows(tensor.name);
    has_embedding = has_embedding || tensor.name == "token_embd.weight";
    if (is_tokens && tensor.shape.back() != n) {
      return unsupported("'" + file.path() + "': the vocabulary cannot be cut: tensor '" +
                         tensor.name + "' has not a row for each of the " + std::to_string(n) +
                         " tokens");
    }
    const bool may_be =
        std::find(tensor.shape.begin(), tensor.shape.end(), n) != tensor.shape.end();
    if (is_tokens || layer_of(tensor.name) >= 0 || !may_be) continue;
    return unsupported("'" + file.path() + "': the vocabulary cannot be cut: tensor '" +
                       tensor.name + "' may have a row for each token, too");
  }
  if (has_embedding) return Status();
  return unsupported("'" + file.path() + "' has no tensor 'token_embd.weight'");
}

Status check_rising(std::span<const std::int32_t> ids, std::int32_t end, const char* what) {
  std::int32_t last = -1;
  for (const std::int32_t id : ids) {
    if (id <= last || id >= end) {
      return invalid_argument(std::string(what) + " " + std::to_string(id) +
                              " is out of range or not in rising order; there are " +
                              std::to_string(end));
    }
    last = id;
  }
  return Status();
}

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first;
  struct stat second;
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

Result<GgufReader> open_whole(const std::string& path) {
  Result<GgufReader> file = GgufReader::open(path);
  if (!file.ok()) return file;
  const Result<std::uint32_t> parts = file->u32("split.count");
  if (parts.ok() && *parts > 1) {
    return unsupported("'" + path + "' is one of the " + std::to_string(*parts) +
                       " files that its model is split over; join them with llama.cpp's "
                       "llama-gguf-split --merge FIRST.gguf WHOLE.gguf, and take the whole");
  }
  return file;
}

// One draft on its way from a file into another.
class Writer {
 public:
  Writer(const GgufReader& file, const DraftRecipe& recipe, const DraftWriting& how)
      : file_(file), recipe_(recipe), how_(how), metadata_(gguf_init_empty()) {}

  Status prepare();
  Status write(AtomicFile& out);

 private:
  Status cut_vocabulary();
  Status cut_blocks();
  void describe();
  Status produce(std::size_t i, std::vector<std::uint8_t>& data);

  const GgufReader& file_;
  const DraftRecipe& recipe_;
  const DraftWriting& how_;
  Handle metadata_;
  std::optional<ggml_type> type_;     // of matrices; not given: each as it is
  std::vector<TensorInfo> tensors_;   // that are written
  std::vector<std::size_t> sources_;  // [tensors_] in the file
};

Status Writer::cut_vocabulary() {
  const Result<FileVocabulary> vocabulary = FileVocabulary::read(file_);
  if (!vocabulary.ok()) return vocabulary.status();
  OUTRIDER_RETURN_IF_ERROR(check_token_rows(file_, *vocabulary));
  OUTRIDER_RETURN_IF_ERROR(check_rising(recipe_.tokens, vocabulary->size(), "token"));
  cut_metadata(metadata_.get(), *vocabulary, recipe_.tokens);
  const Result<std::string> architecture = file_.string("general.architecture");
  if (!architecture.ok()) return architecture.status();
  const std::string size_key = *architecture + ".vocab_size";
  if (file_.has(size_key)) {
    gguf_set_val_u32(metadata_.get(), size_key.c_str(),
                     static_cast<std::uint32_t>(recipe_.tokens.size()));
  }
  return Status();
}

Status Writer::cut_blocks() {
  const Result<LayerShape> shape = read_layers(file_);
  if (!shape.ok()) return shape.status();
  OUTRIDER_RETURN_IF_ERROR(shape->can_be_cut);
  OUTRIDER_RETURN_IF_ERROR(check_rising(recipe_.layers, shape->n_layers, "layer"));
  cut_layers(metadata_.get(), *shape, recipe_.layers);
  return Status();
}

// The tensors of the new file.
void Writer::describe() {
  for (std::size_t i = 0; i < file_.tensors().size(); ++i) {
    TensorInfo tensor = file_.tensors()[i];
    const std::int32_t layer = layer_of(tensor.name);
    if (layer >= 0 && !recipe_.layers.empty()) {
      const auto at = std::lower_bound(recipe_.layers.begin(), recipe_.layers.end(), layer);
      if (at == recipe_.layers.end() || *at != layer) continue;
      tensor.name = in_layer(tensor.name, static_cast<std::int32_t>(at - recipe_.layers.begin()));
    }
    if (!recipe_.tokens.empty() && has_token_rows(tensor.name)) {
      tensor.shape.back() = static_cast<std::int64_t>(recipe_.tokens.size());
    }
    if (type_ && is_matrix(tensor) && can_convert(tensor.type, *type_, tensor.row_length())) {
      tensor.type = *type_;
    }
    tensors_.push_back(std::move(tensor));
    sources_.push_back(i);
  }
}

Status Writer::prepare() {
  if (!recipe_.type.empty()) {
    const Result<ggml_type> type = type_of(recipe_.type);
    if (!type.ok()) return type.status();
    type_ = *type;
  }
  gguf_set_kv(metadata_.get(), file_.metadata());
  if (!recipe_.tokens.empty()) OUTRIDER_RETURN_IF_ERROR(cut_vocabulary());
  if (!recipe_.layers.empty()) OUTRIDER_RETURN_IF_ERROR(cut_blocks());
  for (const NamedType& known : kFileTypes) {
    if (type_ && known.type == *type_) {
      gguf_set_val_u32(metadata_.get(), kFileType, static_cast<std::uint32_t>(known.file_type));
    }
  }
  for (const auto& [key, value] : recipe_.notes) {
    gguf_set_val_str(metadata_.get(), (kDraftKeys + key).c_str(), value.c_str());
  }
  describe();
  return Status();
}

// The bytes of the i-th new tensor.
Status Writer::produce(std::size_t i, std::vector<std::uint8_t>& data) {
  if (how_.cancel != nullptr && how_.cancel->load()) return cancelled("interrupted");
  if (how_.progress) {
    how_.progress(static_cast<double>(i) / static_cast<double>(tensors_.size()));
  }
  const TensorInfo& before = file_.tensors()[sources_[i]];
  const TensorInfo& after = tensors_[i];
  OUTRIDER_RETURN_IF_ERROR(file_.read_tensor(sources_[i], data));
  if (!recipe_.tokens.empty() && has_token_rows(before.name)) {
    const std::size_t bytes = before.bytes() / static_cast<std::size_t>(before.shape.back());
    std::size_t to = 0;
    for (const Token token : recipe_.tokens) {  // rising: never over what is still to be read
      std::copy_n(
          data.begin() + static_cast<std::ptrdiff_t>(bytes * static_cast<std::size_t>(token)),
          bytes, data.begin() + static_cast<std::ptrdiff_t>(bytes * to++));
    }
    data.resize(bytes * recipe_.tokens.size());
  }
  return convert_rows(data, after.n_rows(), after.row_length(), before.type, after.type,
                      how_.n_threads, how_.cancel);
}

Status Writer::write(AtomicFile& out) {
  OUTRIDER_RETURN_IF_ERROR(write_gguf(
      metadata_.get(), tensors_,
      [this](std::size_t i, std::vector<std::uint8_t>& data) { return produce(i, data); },
      [&out](std::span<const std::uint8_t> bytes) { return out.write(std::as_bytes(bytes)); }));
  if (how_.progress) how_.progress(1.0);
  return Status();
}

}  // namespace

Status check_draft_type(const std::string& type) { return type_of(type).status(); }

Result<DraftSource> read_draft_source(const std::string& path) {
  const Result<GgufReader> file = open_whole(path);
  if (!file.ok()) return file.status();
  const Result<LayerShape> shape = read_layers(*file);
  if (!shape.ok()) return shape.status();
  DraftSource source{
      .n_layers = shape->n_layers, .bytes = file->file_bytes(), .cuts_layers = shape->can_be_cut};
  const Result<FileVocabulary> vocabulary = FileVocabulary::read(*file);
  source.cuts_tokens = vocabulary.ok() ? check_token_rows(*file, *vocabulary) : vocabulary.status();
  if (vocabulary.ok()) source.n_tokens = vocabulary->size();
  bool first = true;
  for (const TensorInfo& tensor : file->tensors()) {
    if (!is_matrix(tensor)) continue;
    const char* const name = ggml_type_name(tensor.type);
    if (first) source.type = name;
    if (source.type != name) source.type.clear();
    first = false;
  }
  return source;
}

Status write_draft(const std::string& source, const std::string& path, const DraftRecipe& recipe,
                   const DraftWriting& how) {
  const Result<GgufReader> file = open_whole(source);
  if (!file.ok()) return file.status();
  if (source == path || is_same_file(source, path)) {
    return invalid_argument("'" + path +
                            "' is the model that the draft is made of; give it "
                            "another name");
  }
  Writer writer(*file, recipe, how);
  OUTRIDER_RETURN_IF_ERROR(writer.prepare());
  FileOps ops;
  Result<AtomicFile> out = AtomicFile::create(path, ops);
  if (!out.ok()) return out.status();
  OUTRIDER_RETURN_IF_ERROR(writer.write(*out));
  return out->commit();
}

}  // namespace outrider::gguf
