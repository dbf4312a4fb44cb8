#include "llama/heads/head_file.h"

#include <algorithm>
#include <cassert>
#include <fstream>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "llama/base/backend.h"
#include "llama/base/handles.h"
#include "llama/files/gguf_header.h"
#include "llama/gguf/integers.h"

namespace outrider::llama {
namespace {

// Each check gets a head of its kind.
struct Kind {
  HeadKind kind;
  TrainedHead head;
  Status (*check)(const HeadFile& head, const HeadTarget& target);
};

Status broken(const HeadFile& head, const std::string& what) {
  return data_loss("'" + head.path + "' is no whole " + head_kind_name(head.kind) +
                   " head: " + what);
}

Status misfit(const HeadFile& head, const HeadTarget& target, const std::string& what) {
  return unsupported("the head '" + head.path + "' does not fit the target '" + target.path +
                     "': " + what);
}

Status check_tensors(const HeadFile& head, std::span<const std::string_view> needed) {
  for (const std::string_view name : needed) {
    if (head.find(std::string(name)) != nullptr) continue;
    return broken(head, "the tensor " + std::string(name) + " is missing");
  }
  return Status();
}

// What every kind shares: where it reads, and the vocabulary that it speaks.
Status check_fit(const HeadFile& head, const HeadTarget& target) {
  const std::string states = why_not_hidden(target.architecture, target.n_layer, head.states());
  if (!states.empty()) return misfit(head, target, states);
  if (head.n_embd_target != target.n_embd) {
    return misfit(head, target,
                  "it reads hidden states of " + std::to_string(head.n_embd_target) +
                      " numbers (target_hidden_size), and the target's have " +
                      std::to_string(target.n_embd));
  }
  if (head.n_vocab == target.n_vocab) return Status();
  return misfit(head, target,
                "it lists " + std::to_string(head.n_vocab) + " tokens, and the target has " +
                    std::to_string(target.n_vocab));
}

// The embedding and the output, its own or the target's.
Status check_matrices(const HeadFile& head, const HeadTarget& target) {
  const HeadFile::Tensor* const embedding = head.find("token_embd.weight");
  const HeadFile::Tensor* const output = head.find("output.weight");
  for (const auto& [tensor, what] :
       {std::pair(embedding, "embedding"), std::pair(output, "output")}) {
    if (tensor != nullptr || head.n_embd == target.n_embd) continue;
    return misfit(
        head, target,
        std::string("it has no ") + what + " of its own, and the target's is for states of " +
            std::to_string(target.n_embd) + " numbers, not " + std::to_string(head.n_embd));
  }
  if (embedding != nullptr && embedding->size[1] != head.n_vocab) {
    return broken(head, "token_embd.weight has " + std::to_string(embedding->size[1]) +
                            " rows, but must have " + std::to_string(head.n_vocab) +
                            ", one for each token");
  }
  const HeadFile::Tensor* const d2t = head.find("d2t");
  if (d2t == nullptr) {
    if (output == nullptr || output->size[1] == head.n_vocab) return Status();
    return broken(head, "output.weight has " + std::to_string(output->size[1]) + " rows for " +
                            std::to_string(head.n_vocab) +
                            " tokens, and d2t, which would say whose they are, is missing");
  }
  if (output == nullptr) {
    return broken(head, "it has d2t, but not the output whose tokens that lists (output.weight)");
  }
  if (d2t->type != "i64" || d2t->size[1] != 1 || d2t->size[0] != output->size[1]) {
    return broken(head, "d2t must have a number (i64) for each of the output's " +
                            std::to_string(output->size[1]) + " rows, and has " +
                            std::to_string(d2t->size[0]) + " of type " + d2t->type);
  }
  for (const std::int64_t id : head.target_ids) {
    if (id >= 0 && id < head.n_vocab) continue;
    return broken(head, "d2t names the token " + std::to_string(id) + ", but tokens are 0 to " +
                            std::to_string(head.n_vocab - 1));
  }
  return Status();
}

Status check_eagle3(const HeadFile& head, const HeadTarget& target) {
  constexpr std::array<std::string_view, 12> kNeeded = {"fc.weight",
                                                        "output_norm.weight",
                                                        "blk.0.attn_norm.weight",
                                                        "blk.0.attn_norm_2.weight",
                                                        "blk.0.attn_q.weight",
                                                        "blk.0.attn_k.weight",
                                                        "blk.0.attn_v.weight",
                                                        "blk.0.attn_output.weight",
                                                        "blk.0.ffn_norm.weight",
                                                        "blk.0.ffn_gate.weight",
                                                        "blk.0.ffn_down.weight",
                                                        "blk.0.ffn_up.weight"};
  if (head.layers.size() != 3) {
    return broken(head, "target_layers names " + std::to_string(head.layers.size()) +
                            " layers of the target, but must name 3");
  }
  if (head.n_layer != 1) {
    return broken(head, "block_count is " + std::to_string(head.n_layer) + ", but must be 1");
  }
  if (!head.keys_are_values) {
    return broken(head, "attention.key_length and attention.value_length must be the same");
  }
  OUTRIDER_RETURN_IF_ERROR(check_tensors(head, kNeeded));
  OUTRIDER_RETURN_IF_ERROR(check_fit(head, target));
  return check_matrices(head, target);
}

// Heads of the same architecture that guess in other ways, by a tensor that each has.
Status check_variation(const HeadFile& head) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kVariations = {
      {{"markov_w1.weight",
        "a DSpark head, whose guesses depend on its own likeliest guesses before them"},
       {"selector_hidden.weight",
        "a DFlash2 head, which chooses among the guesses of a block by itself"},
       {"hc_head_fn.weight", "a head made of DeepSeek V4's blocks"}}};
  for (const auto& [tensor, what] : kVariations) {
    if (head.find(std::string(tensor)) == nullptr) continue;
    return unsupported("'" + head.path + "' is " + std::string(what) +
                       "; only plain DFlash heads are supported");
  }
  return Status();
}

Status check_block(const HeadFile& head) {
  if (head.block.n_tokens < 2) {
    return broken(
        head, "block_size is " + std::to_string(head.block.n_tokens) + ", but must be at least 2");
  }
  if (head.block.mask >= 0 && head.block.mask < head.n_vocab) return Status();
  return broken(head,
                "it names no token of its vocabulary that stands for a guess to be made "
                "(tokenizer.ggml.mask_token_id)");
}

Status check_dflash(const HeadFile& head, const HeadTarget& target) {
  constexpr std::array<std::string_view, 3> kNeeded = {"fc.weight", "enc.output_norm.weight",
                                                       "output_norm.weight"};
  OUTRIDER_RETURN_IF_ERROR(check_variation(head));
  OUTRIDER_RETURN_IF_ERROR(check_tensors(head, kNeeded));
  if (head.layers.empty()) return broken(head, "target_layers names no layers of the target");
  if (!head.keys_are_values) {
    return broken(head, "attention.key_length and attention.value_length must be the same");
  }
  OUTRIDER_RETURN_IF_ERROR(check_block(head));
  if (head.n_embd != target.n_embd) {
    return misfit(head, target,
                  "its states have " + std::to_string(head.n_embd) +
                      " numbers (embedding_length), and the target's " +
                      std::to_string(target.n_embd));
  }
  OUTRIDER_RETURN_IF_ERROR(check_fit(head, target));
  return check_matrices(head, target);
}

constexpr std::array<Kind, kTrainedHeads.size()> kKinds = {
    {{HeadKind::kEagle3, kEagle3Head, check_eagle3},
     {HeadKind::kDflash, kDflashHead, check_dflash}}};

const Kind& row_of(HeadKind kind) {
  const auto* const row =
      std::find_if(kKinds.begin(), kKinds.end(), [kind](const Kind& k) { return k.kind == kind; });
  assert(row != kKinds.end());
  return *row;
}

// Negative numbers stay what they are. Empty: there are none.
std::vector<std::int32_t> numbers(const gguf_context* gguf, const std::string& key) {
  std::vector<std::int32_t> result;
  for (const std::int64_t value : gguf::integers(gguf, key)) {
    result.push_back(gguf::in_32_bits(value));
  }
  return result;
}

std::int32_t number(const gguf_context* gguf, const std::string& key) {
  return gguf::in_32_bits(gguf::integer(gguf, key).value_or(0));
}

BlockShape read_block(const gguf_context* gguf, const std::string& prefix) {
  BlockShape block;
  if (gguf_find_key(gguf, (prefix + "block_size").c_str()) >= 0) {
    block.n_tokens = number(gguf, prefix + "block_size");
  }
  constexpr const char* kMask = "tokenizer.ggml.mask_token_id";
  if (gguf_find_key(gguf, kMask) >= 0) block.mask = number(gguf, kMask);
  const std::int64_t causal = gguf_find_key(gguf, (prefix + "attention.causal").c_str());
  block.causal = causal >= 0 && gguf_get_kv_type(gguf, causal) == GGUF_TYPE_BOOL &&
                 gguf_get_val_bool(gguf, causal);
  return block;
}

// REQUIRES: the header has been checked: all data lies within the file.
std::vector<std::int64_t> read_ids(const std::string& path, const gguf_context* gguf) {
  const std::int64_t index = gguf_find_tensor(gguf, "d2t");
  if (index < 0 || gguf_get_tensor_type(gguf, index) != GGML_TYPE_I64) return {};
  std::vector<std::int64_t> ids(gguf_get_tensor_size(gguf, index) / sizeof(std::int64_t));
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(gguf_get_data_offset(gguf) +
                                         gguf_get_tensor_offset(gguf, index)));
  file.read(reinterpret_cast<char*>(ids.data()),
            static_cast<std::streamsize>(ids.size() * sizeof(std::int64_t)));
  if (!file) ids.assign(1, -1);  // cut off meanwhile: no token
  return ids;
}

// Adds what is in one of the head's files, whose header was read: this cannot fail but by a change
// of the file.
Result<GgufHandle> read_tensors(const std::string& path, HeadFile* head) {
  ggml_context* shapes = nullptr;
  const LogSink no_sink;
  const LogCapture log(no_sink);
  GgufHandle gguf(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &shapes}));
  if (!gguf) return data_loss("'" + path + "' was changed while it was read" + log.because());
  const std::unique_ptr<ggml_context, decltype(&ggml_free)> owned(shapes, ggml_free);
  for (ggml_tensor* t = ggml_get_first_tensor(shapes); t != nullptr;
       t = ggml_get_next_tensor(shapes, t)) {
    head->tensors.push_back({.name = t->name,
                             .type = ggml_type_name(t->type),
                             .size = {t->ne[0], t->ne[1], t->ne[2], t->ne[3]}});
  }
  std::vector<std::int64_t> ids = read_ids(path, gguf.get());
  if (!ids.empty()) head->target_ids = std::move(ids);
  return gguf;
}

}  // namespace

const HeadFile::Tensor* HeadFile::find(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&name](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

std::string head_kind_name(HeadKind kind) { return std::string(row_of(kind).head.name); }

Result<HeadFile> read_head_file(const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(const GgufHeader header, read_gguf_header(path));
  return read_head_file(path, header);
}

Result<HeadFile> read_head_file(const std::string& path, const GgufHeader& header) {
  HeadFile head;
  head.path = path;
  head.architecture = header.architecture;
  for (const Kind& kind : kKinds) {
    if (kind.head.architecture == header.architecture) head.kind = kind.kind;
  }
  if (head.kind == HeadKind::kNone) return head;
  head.file_bytes = header.file_bytes;
  OUTRIDER_ASSIGN_OR_RETURN(const GgufHandle gguf, read_tensors(path, &head));
  for (const std::string& file : split_files(path, header.n_splits)) {
    if (file == path) continue;
    OUTRIDER_ASSIGN_OR_RETURN(const GgufHeader part, read_gguf_header(file));
    head.file_bytes += part.file_bytes;
    OUTRIDER_RETURN_IF_ERROR(read_tensors(file, &head).status());
  }
  const std::string prefix = header.architecture + ".";
  head.layers = numbers(gguf.get(), prefix + "target_layers");
  head.n_embd_target = number(gguf.get(), prefix + "target_hidden_size");
  head.n_layer = header.n_layer;
  head.n_embd = header.n_embd;
  head.n_vocab = header.n_vocab;
  head.keys_are_values = header.head_sizes_k == header.head_sizes_v;
  if (head.kind == HeadKind::kDflash) {
    head.n_embd_target = head.n_embd;  // it reads what it is made of itself
    head.block = read_block(gguf.get(), prefix);
  }
  return head;
}

Status check_head(const HeadFile& head, const HeadTarget& target) {
  return row_of(head.kind).check(head, target);
}

}  // namespace outrider::llama
