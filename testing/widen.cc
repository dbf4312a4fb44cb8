#include "testing/widen.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "testing/gguf_file.h"

namespace outrider::testing {
namespace {

// What happens to one dimension of a tensor.
enum class Dimension {
  kKeep,
  kWiden,     // followed by zeros, `factor` times as long
  kWidenQkv,  // queries, keys and values one after the other, each of them widened
};

// What happens to a tensor. A tensor has one role, found by the end of its name.
struct Role {
  std::string_view name;  // without "blk.N."
  std::array<Dimension, 3> dimensions;
  bool is_norm = false;  // values are divided by sqrt(factor)
};

constexpr Dimension kKeep = Dimension::kKeep;
constexpr Dimension kWiden = Dimension::kWiden;
constexpr Dimension kWidenQkv = Dimension::kWidenQkv;

// Every tensor that llama.cpp loads for architecture "llama", rows (the contiguous size) first.
constexpr Role kRoles[] = {
    {"token_embd.weight", {kWiden, kKeep, kKeep}},
    {"output.weight", {kWiden, kKeep, kKeep}},
    {"output_norm.weight", {kWiden, kKeep, kKeep}, true},
    {"rope_freqs.weight", {kKeep, kKeep, kKeep}},
    {"rope_factors_long.weight", {kKeep, kKeep, kKeep}},
    {"rope_factors_short.weight", {kKeep, kKeep, kKeep}},
    {"attn_norm.weight", {kWiden, kKeep, kKeep}, true},
    {"attn_q.weight", {kWiden, kWiden, kKeep}},
    {"attn_k.weight", {kWiden, kWiden, kKeep}},
    {"attn_v.weight", {kWiden, kWiden, kKeep}},
    {"attn_qkv.weight", {kWiden, kWidenQkv, kKeep}},
    {"attn_output.weight", {kWiden, kWiden, kKeep}},
    {"attn_q.bias", {kWiden, kKeep, kKeep}},
    {"attn_k.bias", {kWiden, kKeep, kKeep}},
    {"attn_v.bias", {kWiden, kKeep, kKeep}},
    {"attn_qkv.bias", {kWidenQkv, kKeep, kKeep}},
    {"attn_output.bias", {kWiden, kKeep, kKeep}},
    {"ffn_norm.weight", {kWiden, kKeep, kKeep}, true},
    {"ffn_gate.weight", {kWiden, kWiden, kKeep}},
    {"ffn_up.weight", {kWiden, kWiden, kKeep}},
    {"ffn_down.weight", {kWiden, kWiden, kKeep}},
    {"ffn_gate.bias", {kWiden, kKeep, kKeep}},
    {"ffn_up.bias", {kWiden, kKeep, kKeep}},
    {"ffn_down.bias", {kWiden, kKeep, kKeep}},
    {"ffn_gate_inp.weight", {kWiden, kKeep, kKeep}},
    {"ffn_gate_exps.weight", {kWiden, kWiden, kKeep}},
    {"ffn_up_exps.weight", {kWiden, kWiden, kKeep}},
    {"ffn_down_exps.weight", {kWiden, kWiden, kKeep}},
    {"ffn_gate_shexp.weight", {kWiden, kWiden, kKeep}},
    {"ffn_up_shexp.weight", {kWiden, kWiden, kKeep}},
    {"ffn_down_shexp.weight", {kWiden, kWiden, kKeep}},
};
// A scale of a whole matrix (or of each expert) multiplies zeros too.
constexpr Role kScaleRole = {".scale", {kKeep, kKeep, kKeep}};

// Integers that count what is widened: one number, or one for each layer.
constexpr const char* kWidenedKeys[] = {
    "llama.embedding_length",
    "llama.embedding_length_out",
    "llama.feed_forward_length",
    "llama.expert_feed_forward_length",
    "llama.attention.head_count",
    "llama.attention.head_count_kv",
    "llama.expert_shared_feed_forward_length",
};
constexpr const char* kRequiredKeys[] = {"llama.embedding_length", "llama.feed_forward_length",
                                         "llama.attention.head_count"};
constexpr const char* kEpsilonKey = "llama.attention.layer_norm_rms_epsilon";

std::string quoted(const std::string& text) { return "'" + text + "'"; }

// "blk.12.attn_q.weight" -> "attn_q.weight".
std::string_view without_block(std::string_view name) {
  if (!name.starts_with("blk.")) return name;
  const std::size_t dot = name.find('.', 4);
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

const Role* role_of(const std::string& tensor) {
  const std::string_view name = without_block(tensor);
  for (const Role& role : kRoles) {
    if (role.name == name) return &role;
  }
  return name.ends_with(kScaleRole.name) ? &kScaleRole : nullptr;
}

// A stretch of rows or values: `used` of the input, then zeros up to `total` of the output.
struct Stretch {
  std::int64_t used;
  std::int64_t total;
};

// How one tensor becomes another.
struct TensorPlan {
  const Role* role;
  TensorInfo from;
  TensorInfo to;
};

class Widener {
 public:
  Widener(const GgufReader& reader, int factor) : reader_(reader), factor_(factor) {}

  Status prepare() {
    OUTRIDER_RETURN_IF_ERROR(check_architecture());
    OUTRIDER_RETURN_IF_ERROR(make_metadata());
    for (const TensorInfo& tensor : reader_.tensors()) OUTRIDER_RETURN_IF_ERROR(plan(tensor));
    return Status();
  }

  const gguf_context* metadata() const { return metadata_.get(); }
  std::vector<TensorInfo> outputs() const {
    std::vector<TensorInfo> infos;
    for (const TensorPlan& plan : plans_) infos.push_back(plan.to);
    return infos;
  }

  Status make_tensor(std::size_t index, std::vector<std::uint8_t>& data);

 private:
  Status check_architecture() const;
  Status make_metadata();
  Status widen_integers(const char* key);
  Status plan(const TensorInfo& tensor);
  std::vector<Stretch> stretches(Dimension dimension, std::int64_t size) const;
  Status set_zero_row(const TensorInfo& tensor);
  void scale_norm(const TensorInfo& tensor, std::vector<std::uint8_t>& values) const;

  const GgufReader& reader_;
  const int factor_;
  std::int64_t n_query_ = 0;  // rows of attn_qkv that are queries, and that are keys
  std::int64_t n_key_ = 0;
  GgufHandle metadata_;
  std::vector<TensorPlan> plans_;  // [tensors of the reader], same order
  std::vector<std::uint8_t> source_;
  std::vector<std::uint8_t> zero_row_;  // a row of the output of the tensor being made
};

Status Widener::check_architecture() const {
  const Result<std::string> architecture = reader_.string("general.architecture");
  if (!architecture.ok()) return architecture.status();
  if (*architecture != "llama") {
    return unsupported(quoted(reader_.path()) + " has the architecture '" + *architecture +
                       "'; only models of the architecture 'llama' can be widened");
  }
  if (reader_.has("split.count")) {
    const Result<std::uint32_t> parts = reader_.u32("split.count");
    if (!parts.ok()) return parts.status();
    if (*parts > 1) {
      return unsupported(quoted(reader_.path()) + " is one of " + std::to_string(*parts) +
                         " parts of a model; join them first (llama-gguf-split --merge)");
    }
  }
  return Status();
}

Status Widener::widen_integers(const char* key) {
  const std::int64_t id = gguf_find_key(metadata_.get(), key);
  if (id < 0) return Status();
  if (gguf_get_kv_type(metadata_.get(), id) != GGUF_TYPE_ARRAY) {
    const Result<std::uint32_t> value = reader_.u32(key);
    if (!value.ok()) return value.status();
    if (*value > std::numeric_limits<std::int32_t>::max() / static_cast<std::uint32_t>(factor_)) {
      return data_loss(quoted(reader_.path()) + ": metadata '" + key + "' is out of range");
    }
    gguf_set_val_u32(metadata_.get(), key, *value * static_cast<std::uint32_t>(factor_));
    return Status();
  }
  const gguf_type type = gguf_get_arr_type(metadata_.get(), id);
  if (type != GGUF_TYPE_UINT32 && type != GGUF_TYPE_INT32) {
    return data_loss(quoted(reader_.path()) + ": metadata '" + key + "' is not made of integers");
  }
  const std::size_t n = gguf_get_arr_n(metadata_.get(), id);
  std::vector<std::uint32_t> values(n);
  std::memcpy(values.data(), gguf_get_arr_data(metadata_.get(), id), n * sizeof values[0]);
  for (std::uint32_t& value : values) value *= static_cast<std::uint32_t>(factor_);
  gguf_set_arr_data(metadata_.get(), key, type, values.data(), n);
  return Status();
}

Status Widener::make_metadata() {
  for (const char* key : kRequiredKeys) {
    if (!reader_.has(key)) {
      return data_loss(quoted(reader_.path()) + " has no metadata '" + key + "'");
    }
  }
  const Result<float> epsilon = reader_.f32(kEpsilonKey);
  if (!epsilon.ok()) return epsilon.status();

  metadata_.reset(gguf_init_empty());
  gguf_set_kv(metadata_.get(), reader_.metadata());
  for (const char* key : kWidenedKeys) OUTRIDER_RETURN_IF_ERROR(widen_integers(key));
  gguf_set_val_f32(metadata_.get(), kEpsilonKey, *epsilon / static_cast<float>(factor_));

  const Result<std::string> name = reader_.string("general.name");
  const std::string suffix = "widened " + std::to_string(factor_) + "x";
  gguf_set_val_str(metadata_.get(), "general.name",
                   (name.ok() ? *name + " " + suffix : suffix).c_str());
  gguf_remove_key(metadata_.get(), "general.size_label");  // the old number of parameters
  return Status();
}

std::vector<Stretch> Widener::stretches(Dimension dimension, std::int64_t size) const {
  const std::int64_t k = factor_;
  switch (dimension) {
    case Dimension::kKeep:
      return {{size, size}};
    case Dimension::kWiden:
      return {{size, size * k}};
    case Dimension::kWidenQkv: {
      const std::int64_t n_value = size - n_query_ - n_key_;
      return {{n_query_, n_query_ * k}, {n_key_, n_key_ * k}, {n_value, n_value * k}};
    }
  }
  return {};
}

Status Widener::plan(const TensorInfo& tensor) {
  const Role* role = role_of(tensor.name);
  if (role == nullptr) {
    return unsupported(quoted(reader_.path()) + " has a tensor " + quoted(tensor.name) +
                       ", which a model of the architecture 'llama' has not; widening it could "
                       "change what the model says");
  }
  const auto is_qkv = [](Dimension d) { return d == Dimension::kWidenQkv; };
  if (std::any_of(role->dimensions.begin(), role->dimensions.end(), is_qkv)) {
    const Result<std::uint32_t> n_head = reader_.u32("llama.attention.head_count");
    if (!n_head.ok()) return n_head.status();
    const Result<std::uint32_t> n_head_kv = reader_.has("llama.attention.head_count_kv")
                                                ? reader_.u32("llama.attention.head_count_kv")
                                                : n_head;
    if (!n_head_kv.ok()) return n_head_kv.status();
    const std::int64_t rows = role->dimensions[0] == kWidenQkv ? tensor.shape[0] : tensor.n_rows();
    const std::int64_t n_heads =
        static_cast<std::int64_t>(*n_head) + 2 * static_cast<std::int64_t>(*n_head_kv);
    if (n_heads == 0 || rows % n_heads != 0) {
      return data_loss(quoted(reader_.path()) + ": tensor " + quoted(tensor.name) +
                       " does not divide into the model's heads");
    }
    n_query_ = rows / n_heads * *n_head;
    n_key_ = rows / n_heads * *n_head_kv;
  }
  if (tensor.shape.size() > role->dimensions.size() ||
      (role->is_norm && tensor.type != GGML_TYPE_F32)) {
    return unsupported(quoted(reader_.path()) + ": tensor " + quoted(tensor.name) +
                       " has an unexpected shape or type");
  }
  TensorInfo to = tensor;
  for (std::size_t i = 0; i < to.shape.size(); ++i) {
    std::int64_t total = 0;
    for (const Stretch& s : stretches(role->dimensions[i], tensor.shape[i])) total += s.total;
    to.shape[i] = total;
  }
  plans_.push_back({role, tensor, to});
  return Status();
}

// A row of zeros in the tensor's own type, checked by reading it back.
Status Widener::set_zero_row(const TensorInfo& tensor) {
  const std::size_t n = static_cast<std::size_t>(tensor.row_length());
  const std::vector<float> zeros(n, 0.0F);
  const std::vector<float> importance(n, 1.0F);  // some types insist on weights per column
  zero_row_.resize(tensor.row_bytes());
  const ggml_to_float_t to_float = ggml_get_type_traits(tensor.type)->to_float;
  if (tensor.type != GGML_TYPE_F32 && to_float == nullptr) {
    return unsupported("tensor " + quoted(tensor.name) + " has the type " +
                       ggml_type_name(tensor.type) + ", which cannot be padded with zeros");
  }
  ggml_quantize_chunk(tensor.type, zeros.data(), zero_row_.data(), 0, 1, tensor.row_length(),
                      importance.data());
  if (tensor.type == GGML_TYPE_F32) return Status();
  std::vector<float> back(n);
  to_float(zero_row_.data(), back.data(), tensor.row_length());
  if (std::any_of(back.begin(), back.end(), [](float value) { return value != 0.0F; })) {
    return unsupported("tensor " + quoted(tensor.name) + " has the type " +
                       ggml_type_name(tensor.type) + ", which cannot hold exact zeros");
  }
  return Status();
}

void Widener::scale_norm(const TensorInfo& tensor, std::vector<std::uint8_t>& values) const {
  const double scale = 1.0 / std::sqrt(static_cast<double>(factor_));
  for (std::int64_t i = 0; i < tensor.row_length() * tensor.n_rows(); ++i) {
    float value;
    std::uint8_t* at = values.data() + static_cast<std::size_t>(i) * sizeof value;
    std::memcpy(&value, at, sizeof value);
    value = static_cast<float>(static_cast<double>(value) * scale);
    std::memcpy(at, &value, sizeof value);
  }
}

Status Widener::make_tensor(std::size_t index, std::vector<std::uint8_t>& data) {
  const TensorPlan& plan = plans_[index];
  OUTRIDER_RETURN_IF_ERROR(reader_.read_tensor(index, source_));
  if (plan.role->is_norm) scale_norm(plan.from, source_);
  OUTRIDER_RETURN_IF_ERROR(set_zero_row(plan.to));

  data.clear();
  data.reserve(plan.to.bytes());
  const std::vector<Stretch> columns = stretches(plan.role->dimensions[0], plan.from.row_length());
  const std::int64_t n_rows = plan.from.shape.size() > 1 ? plan.from.shape[1] : 1;
  const std::vector<Stretch> rows = stretches(plan.role->dimensions[1], n_rows);
  const std::int64_t n_planes = plan.from.n_rows() / n_rows;
  const std::uint8_t* from = source_.data();
  const auto append = [&](const std::uint8_t* begin, std::size_t bytes) {
    data.insert(data.end(), begin, begin + bytes);
  };
  for (std::int64_t plane = 0; plane < n_planes; ++plane) {
    for (const Stretch& stretch : rows) {
      for (std::int64_t row = 0; row < stretch.total; ++row) {
        if (row >= stretch.used) {
          append(zero_row_.data(), zero_row_.size());
          continue;
        }
        for (const Stretch& column : columns) {
          const std::size_t used = ggml_row_size(plan.from.type, column.used);
          append(from, used);
          append(zero_row_.data(), ggml_row_size(plan.from.type, column.total) - used);
          from += used;
        }
      }
    }
  }
  assert(data.size() == plan.to.bytes());
  return Status();
}

}  // namespace

Status widen_gguf(const std::string& input, const std::string& output, int factor,
                  const WidenProgress& progress) {
  if (factor < kMinWidenFactor || factor > kMaxWidenFactor) {
    return invalid_argument("the factor is " + std::to_string(factor) + "; give " +
                            std::to_string(kMinWidenFactor) + " to " +
                            std::to_string(kMaxWidenFactor));
  }
  if (input == output || same_file(input, output)) {
    return invalid_argument("input and output are the same file " + quoted(input) +
                            "; give another name for the output");
  }
  const Result<GgufReader> reader = GgufReader::open(input);
  if (!reader.ok()) return reader.status();
  Widener widener(*reader, factor);
  OUTRIDER_RETURN_IF_ERROR(widener.prepare());

  const std::vector<TensorInfo> outputs = widener.outputs();
  std::uint64_t total = 0;
  for (const TensorInfo& info : outputs) total += info.bytes();
  std::uint64_t done = 0;
  const TensorSource source = [&](std::size_t index, std::vector<std::uint8_t>& data) {
    if (progress != nullptr && !progress(done, total)) {
      return cancelled("widening of " + quoted(input) + " was stopped");
    }
    done += outputs[index].bytes();
    return widener.make_tensor(index, data);
  };
  OUTRIDER_RETURN_IF_ERROR(
      write_gguf(output, widener.metadata(), outputs, source, /*durable=*/true));
  if (progress != nullptr) progress(total, total);
  return Status();
}

}  // namespace outrider::testing
