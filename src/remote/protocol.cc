#include "remote/protocol.h"

#include <algorithm>

namespace outrider {
namespace {

template <typename E>
void put_choice(WireWriter& to, E value) {
  to.number(static_cast<std::uint32_t>(value));
}

// All but two: worker_timeout_s is the parent's own affair, and a head reads its target in the same
// process. protocol_test.cc holds this against every member.
void put(WireWriter& to, const ModelOptions& options) {
  to.text(options.path);
  to.number(options.n_ctx);
  to.number(options.n_sequences);
  to.number(options.n_batch);
  to.number(options.n_threads);
  to.number(options.n_gpu_layers);
  to.text(options.cache_type_k);
  to.text(options.cache_type_v);
  put_choice(to, options.flash_attention);
  put_choice(to, options.exact);
  put_choice(to, options.kernels);
  to.numbers<float>(options.tensor_split);
  to.texts(options.lora);
  to.number<std::uint8_t>(options.use_mmap);
  to.number<std::uint8_t>(options.use_mlock);
  to.number(options.rope_freq_base);
  to.number(options.rope_freq_scale);
  to.texts(options.workers);
  to.number<std::uint8_t>(options.isolate);
  to.number(options.widest);
  put_choice(to, options.mtp);
}

ModelOptions read_options(WireReader& from) {
  ModelOptions options;
  options.path = from.text();
  options.n_ctx = from.number<std::int32_t>();
  options.n_sequences = from.number<std::int32_t>();
  options.n_batch = from.number<std::int32_t>();
  options.n_threads = from.number<std::int32_t>();
  options.n_gpu_layers = from.number<std::int32_t>();
  options.cache_type_k = from.text();
  options.cache_type_v = from.text();
  options.flash_attention = from.choice(FlashAttention::kOff);
  options.exact = from.choice(ExactMode::kOff);
  options.kernels = from.choice(KernelChoice::kStock);
  options.tensor_split = from.numbers<float>();
  options.lora = from.texts();
  options.use_mmap = from.flag();
  options.use_mlock = from.flag();
  options.rope_freq_base = from.number<float>();
  options.rope_freq_scale = from.number<float>();
  options.workers = from.texts();
  options.isolate = from.flag();
  options.widest = from.number<std::int32_t>();
  options.mtp = from.choice(HeadChoice::kOff);
  return options;
}

void put(WireWriter& to, const Capabilities& capabilities) {
  to.number(capabilities.n_vocab);
  to.number(capabilities.n_ctx);
  to.number(capabilities.n_batch);
  to.number(capabilities.n_sequences);
  put_choice(to, capabilities.rollback);
  to.number(capabilities.max_leaves);
  to.number(capabilities.max_width);
  to.text(capabilities.rollback_reason);
  to.text(capabilities.branches_reason);
  to.number<std::uint8_t>(capabilities.can_share);
}

Capabilities read_capabilities(WireReader& from) {
  Capabilities capabilities;
  capabilities.n_vocab = from.number<std::int32_t>();
  capabilities.n_ctx = from.number<std::int32_t>();
  capabilities.n_batch = from.number<std::int32_t>();
  capabilities.n_sequences = from.number<std::int32_t>();
  capabilities.rollback = from.choice(Rollback::kNone);
  capabilities.max_leaves = from.number<std::int32_t>();
  capabilities.max_width = from.number<std::int32_t>();
  capabilities.rollback_reason = from.text();
  capabilities.branches_reason = from.text();
  capabilities.can_share = from.flag();
  return capabilities;
}

void put(WireWriter& to, const Exactness& exactness) {
  put_choice(to, exactness.kind);
  to.number(exactness.width);
  to.text(exactness.coverage);
  to.text(exactness.reason);
}

Exactness read_exactness(WireReader& from) {
  Exactness exactness;
  exactness.kind = from.choice(Exactness::Kind::kDistributional);
  exactness.width = from.number<std::int32_t>();
  exactness.coverage = from.text();
  exactness.reason = from.text();
  return exactness;
}

void put(WireWriter& to, const ModelInfo& info) {
  to.text(info.path);
  to.text(info.architecture);
  to.text(info.name);
  to.text(info.description);
  to.number(info.n_params);
  to.number(info.size_bytes);
  to.number(info.n_ctx_train);
  to.number<std::uint8_t>(info.has_chat_template);
  to.number<std::uint8_t>(info.chat_tools);
  to.number<std::uint8_t>(info.chat_reasoning);
  to.number<std::uint8_t>(info.kernels.own);
  to.text(info.kernels.instruction_set);
  to.text(info.kernels.reason);
  to.number(info.kernels.packed_bytes);
  to.number(info.kernels.packed_in_file_bytes);
}

ModelInfo read_info(WireReader& from) {
  ModelInfo info;
  info.path = from.text();
  info.architecture = from.text();
  info.name = from.text();
  info.description = from.text();
  info.n_params = from.number<std::uint64_t>();
  info.size_bytes = from.number<std::uint64_t>();
  info.n_ctx_train = from.number<std::int32_t>();
  info.has_chat_template = from.flag();
  info.chat_tools = from.flag();
  info.chat_reasoning = from.flag();
  info.kernels.own = from.flag();
  info.kernels.instruction_set = from.text();
  info.kernels.reason = from.text();
  info.kernels.packed_bytes = from.number<std::uint64_t>();
  info.kernels.packed_in_file_bytes = from.number<std::uint64_t>();
  return info;
}

// Nodes as token and parent, root first. A tree that breaks TokenTree's invariants is none.
std::optional<TokenTree> read_tree(WireReader& from, bool* broken) {
  const std::vector<std::int32_t> nodes = from.numbers<std::int32_t>();
  *broken = nodes.size() % 2 != 0;
  if (nodes.empty() || *broken) return std::nullopt;
  TokenTree tree(nodes[0]);
  for (std::size_t i = 2; i < nodes.size() && !*broken; i += 2) {
    const NodeId id = static_cast<NodeId>(i / 2);
    const NodeId parent = nodes[i + 1];
    *broken = parent < 0 || parent >= id || tree.add(parent, nodes[i], 1.0f, 1) != id;
  }
  return tree;
}

}  // namespace

void put(WireWriter& to, const Status& status) {
  put_choice(to, status.code());
  to.text(status.message());
  to.text(status.field());  // no excess(): that is of requests, which the parent checks
}

Status read_status(WireReader& from) {
  const StatusCode code = from.choice(StatusCode::kInternal);
  std::string message = from.text();
  std::string field = from.text();
  if (code == StatusCode::kOk) return Status();
  // So that whoever spells the field in another way finds it in the message.
  if (!field.empty() && message.starts_with(field + ' ')) {
    return refused(code, field, std::string_view(message).substr(field.size() + 1));
  }
  return Status(code, std::move(message)).about(std::move(field));
}

void put(WireWriter& to, const OpenRequest& request) {
  put(to, request.model);
  to.number<std::uint8_t>(request.speculation);
  to.number(request.probe_budget_ms);
  to.number<std::uint8_t>(request.cache_folder.has_value());
  to.text(request.cache_folder.value_or(""));
}

OpenRequest read_open_request(WireReader& from) {
  OpenRequest request;
  request.model = read_options(from);
  request.speculation = from.flag();
  request.probe_budget_ms = from.number<double>();
  const bool has_folder = from.flag();
  std::string folder = from.text();
  if (has_folder) request.cache_folder = std::move(folder);
  return request;
}

void put(WireWriter& to, const OpenReport& report) {
  put(to, report.capabilities);
  put(to, report.exactness);
  to.texts(report.notes);
  put(to, report.info);
}

OpenReport read_report(WireReader& from) {
  OpenReport report;
  report.capabilities = read_capabilities(from);
  report.exactness = read_exactness(from);
  report.notes = from.texts();
  report.info = read_info(from);
  return report;
}

void put(WireWriter& to, const EvalItem& item) {
  to.number(item.seq);
  to.numbers<Token>(item.prefix);
  std::vector<std::int32_t> nodes;
  const NodeId n_nodes = item.tree == nullptr ? 0 : item.tree->size();
  for (NodeId id = 0; id < n_nodes; ++id) {
    nodes.push_back(item.tree->token(id));
    nodes.push_back(item.tree->node(id).parent);
  }
  to.numbers<std::int32_t>(nodes);
  to.number(item.first_new);
}

OwnedItem read_item(WireReader& from) {
  OwnedItem item;
  bool broken = false;
  item.seq = from.number<SeqId>();
  item.prefix = from.numbers<Token>();
  item.tree = read_tree(from, &broken);
  item.first_new = from.number<NodeId>();
  const NodeId n_nodes = item.tree ? item.tree->size() : 0;
  broken = broken || item.first_new < 0 || item.first_new > n_nodes;
  if (broken) from.reject();
  return item;
}

void put(WireWriter& to, std::span<const SequenceState> states) {
  to.number<std::uint64_t>(states.size());
  for (const SequenceState& state : states) {
    to.number(state.length);
    to.number(state.room);
  }
}

std::vector<SequenceState> read_states(WireReader& from) {
  std::vector<SequenceState> states;
  const std::uint64_t n = from.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < n && !from.failed(); ++i) {
    SequenceState state;
    state.length = from.number<Pos>();
    state.room = from.number<std::int32_t>();
    states.push_back(state);
  }
  return states;
}

std::uint64_t most_rows(const Capabilities& capabilities) {
  const std::uint64_t in_trees = static_cast<std::uint64_t>(std::max(0, capabilities.n_sequences)) *
                                 static_cast<std::uint64_t>(std::max(0, capabilities.max_width));
  return std::min(in_trees, static_cast<std::uint64_t>(std::max(0, capabilities.n_batch)));
}

std::uint64_t most_floats(const Capabilities& capabilities) {
  return most_rows(capabilities) * static_cast<std::uint64_t>(std::max(0, capabilities.n_vocab));
}

}  // namespace outrider
