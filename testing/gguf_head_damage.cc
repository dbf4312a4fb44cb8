#include "testing/gguf_head_damage.h"

#include <cstdio>
#include <functional>

#include "testing/gguf_damage.h"
#include "testing/gguf_file.h"
#include "testing/tiny_gguf_dflash.h"
#include "testing/tiny_gguf_eagle3.h"
#include "testing/tiny_gguf_lag.h"

namespace outrider::testing {
namespace {

using Change = std::function<void(gguf_context*)>;

Change set_number(const char* key, std::uint32_t value) {
  return [key, value](gguf_context* gguf) { gguf_set_val_u32(gguf, key, value); };
}

Change set_taps(const char* key, const std::vector<std::int32_t>& taps) {
  return [key, taps](gguf_context* gguf) {
    gguf_set_arr_data(gguf, key, GGUF_TYPE_INT32, taps.data(), taps.size());
  };
}

Change remove_key(const char* key) {
  return [key](gguf_context* gguf) { gguf_remove_key(gguf, key); };
}

class BadHeads {
 public:
  explicit BadHeads(std::string folder) : folder_(std::move(folder)) {
    mtp_.architecture = TinyLagArchitecture::kHyV3;
    mtp_.mtp = {TinyHead::kEqual};
    hybrid_ = mtp_;
    hybrid_.architecture = TinyLagArchitecture::kQwen35;
    block_.lags = {3, 4};
    block_.reads_current = false;
    reduced_.tokens = {80, 81, 82, 83};
  }

  Result<std::vector<BadHead>> write() {
    OUTRIDER_RETURN_IF_ERROR(write_lag("llama", llama_));
    OUTRIDER_RETURN_IF_ERROR(write_lag("block", block_));
    OUTRIDER_RETURN_IF_ERROR(write_lag("hy_v3", mtp_));
    OUTRIDER_RETURN_IF_ERROR(write_lag("qwen35", hybrid_));
    TinyModelOptions narrow;
    narrow.n_embd = 64;
    narrow.n_layer = 4;
    OUTRIDER_RETURN_IF_ERROR(write_tiny_gguf(path("narrow"), narrow));
    add_eagle3();
    add_d2t();
    add_mtp();
    add_dflash();
    if (!status_.ok()) return status_;
    return std::move(heads_);
  }

 private:
  std::string path(const std::string& name) const { return folder_ + "/" + name + ".gguf"; }
  Status write_lag(const std::string& name, const TinyLagOptions& options) const {
    return write_tiny_lag(path(name), options);
  }
  void note(const Status& status) {
    if (status_.ok()) status_ = status;
  }

  // `from` becomes `to`, with other keys and without the tensor `without`.
  void change(const std::string& from, const std::string& to, const Change& change,
              const std::string& without) {
    note(copy_changed(
        from, to, change != nullptr ? change : [](gguf_context*) {}, without));
    std::remove(from.c_str());
  }

  void eagle3(const char* what, BadHeadEffect effect, const std::string& target, const Change& keys,
              const std::string& without = "",
              const TinyEagle3Options& options = TinyEagle3Options()) {
    const std::string head = path("head-" + std::to_string(heads_.size()));
    heads_.push_back({what, LlamaHeadKind::kEagle3, path(target), head, effect});
    note(write_tiny_eagle3(head + ".whole", llama_, options));
    change(head + ".whole", head, keys, without);
  }

  void dflash(const char* what, BadHeadEffect effect, const std::string& target,
              const Change& keys) {
    const std::string head = path("head-" + std::to_string(heads_.size()));
    heads_.push_back({what, LlamaHeadKind::kDflash, path(target), head, effect});
    note(write_tiny_dflash(head + ".whole", block_));
    change(head + ".whole", head, keys, "");
  }

  void mtp(const char* what, BadHeadEffect effect, const TinyLagOptions& options,
           const Change& keys, const std::string& without = "") {
    const std::string target = path("mtp-" + std::to_string(heads_.size()));
    heads_.push_back({what, LlamaHeadKind::kMtp, target, "", effect});
    note(write_tiny_lag(target + ".whole", options));
    change(target + ".whole", target, keys, without);
  }

  void add_eagle3() {
    const char* taps = "eagle3.target_layers";
    eagle3("a target without taps", kAborts, "hy_v3", nullptr);
    eagle3("a tap above the target's layers", kAborts, "llama", set_taps(taps, {0, 1, 9}));
    eagle3("a tap below 0", kAborts, "llama", set_taps(taps, {-1, 1, 2}));
    eagle3("a tap behind the last layer of a target without nextn rows", kSilent, "llama",
           set_taps(taps, {0, 1, 4}));
    eagle3("two taps", kRefused, "llama", set_taps(taps, {1, 2}));
    eagle3("two layers", kRefused, "llama", set_number("eagle3.block_count", 2));
    eagle3("a wrong width of the target", kRefused, "llama",
           set_number("eagle3.target_hidden_size", 64));
    eagle3("no fc", kRefused, "llama", nullptr, "fc.weight");
    eagle3("another width than the target's, whose embedding it uses", kAborts, "narrow", nullptr);
    TinyEagle3Options own;
    own.own_embedding = true;
    eagle3("another width than the target's, but an embedding of its own", kSilent, "narrow",
           nullptr, "", own);
  }

  void add_d2t() {
    eagle3("d2t without an output", kAborts, "llama", nullptr, "output.weight", reduced_);
    eagle3("an output of few tokens without d2t", kRefused, "llama", nullptr, "d2t", reduced_);
    // An id that is no token: the last of d2t, by its bytes.
    TinyEagle3Options options = reduced_;
    eagle3("an id in d2t that is no token", kAborts, "llama", nullptr, "", options);
    const Result<GgufReader> reader = GgufReader::open(heads_.back().head_path);
    if (!reader.ok()) return note(reader.status());
    const std::uint64_t offset =
        gguf_get_data_offset(reader->metadata()) +
        gguf_get_tensor_offset(reader->metadata(), gguf_find_tensor(reader->metadata(), "d2t"));
    const std::string whole = heads_.back().head_path + ".whole";
    std::rename(heads_.back().head_path.c_str(), whole.c_str());
    note(copy_with_byte(whole, heads_.back().head_path, offset + 2, 1));  // + 65536
    std::remove(whole.c_str());
  }

  void add_mtp() {
    const char* n_mtp = "hy_v3.nextn_predict_layers";
    TinyLagOptions without = mtp_;
    without.mtp.clear();
    mtp("a target without MTP blocks", kRefused, without, nullptr);
    mtp("a target of an architecture without MTP", kRefused, llama_, nullptr);
    mtp("a block without eh_proj", kAborts, mtp_, nullptr, "blk.4.nextn.eh_proj.weight");
    mtp("a block without a feed-forward part", kAborts, mtp_, nullptr, "blk.4.ffn_down.weight");
    mtp("a block without enorm", kRefused, mtp_, nullptr, "blk.4.nextn.enorm.weight");
    mtp("more MTP blocks than blocks", kAborts, mtp_, set_number(n_mtp, 9));
    mtp("MTP blocks and no others", kAborts, mtp_, set_number(n_mtp, 5));
    mtp("a hybrid block without eh_proj", kRefused, hybrid_, nullptr, "blk.4.nextn.eh_proj.weight");
    mtp("two blocks where one was written", kRefused, hybrid_,
        set_number("qwen35.nextn_predict_layers", 2));
  }

  void add_dflash() {
    const char* taps = "dflash.target_layers";
    dflash("a target without taps", kAborts, "hy_v3", nullptr);
    dflash("a tap behind the last layer", kAborts, "block", set_taps(taps, {0, 4}));
    dflash("a tap above the target's layers", kAborts, "block", set_taps(taps, {0, 600}));
    dflash("no taps", kRefused, "block", remove_key(taps));
    dflash("another width than the target's", kAborts, "narrow", nullptr);
    dflash("no mask token", kSilent, "block", remove_key("tokenizer.ggml.mask_token_id"));
    dflash("a block of one token", kSilent, "block", set_number("dflash.block_size", 1));
    dflash("a block of no token", kSilent, "block", set_number("dflash.block_size", 0));
  }

  static constexpr BadHeadEffect kRefused = BadHeadEffect::kRefused;
  static constexpr BadHeadEffect kAborts = BadHeadEffect::kAborts;
  static constexpr BadHeadEffect kSilent = BadHeadEffect::kSilent;

  std::string folder_;
  TinyLagOptions llama_;
  TinyLagOptions block_;
  TinyLagOptions mtp_;
  TinyLagOptions hybrid_;
  TinyEagle3Options reduced_;
  std::vector<BadHead> heads_;
  Status status_;
};

}  // namespace

Result<std::vector<BadHead>> write_bad_heads(const std::string& folder) {
  return BadHeads(folder).write();
}

}  // namespace outrider::testing
