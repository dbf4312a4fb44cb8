// What the draft model's drafter does for trained heads: the target's hidden states, and the window
// of a text that a head reads.
#include "draft/model/draft_model.h"

namespace outrider {
namespace {

// Rows of a prompt that wait for the encoder at most: they are three times as wide as what it makes
// of them, and many at once read its matrix once.
constexpr std::size_t kMostRaw = 64;

}  // namespace

void DraftModelDrafter::see_hidden(SeqId seq, std::size_t position, Token token,
                                   std::span<const float> row) {
  HiddenRows& rows = *state_of(seq).rows;
  rows.see(position, token, row);
  // A failure comes again, and is told, when they are read.
  if (rows.n_raw() >= kMostRaw) (void)encode_rows({&seq, 1});
}

// All that the target has shown of these, in one pass.
Status DraftModelDrafter::encode_rows(std::span<const SeqId> sequences) {
  if (model_.capabilities().n_encoded == 0) return Status();
  std::vector<float> raw;
  for (const SeqId seq : sequences) state_of(seq).rows->append_raw(&raw);
  if (raw.empty()) return Status();
  std::vector<float> encoded;
  OUTRIDER_RETURN_IF_ERROR(model_.encode(raw, &encoded));
  std::span<const float> rest = encoded;
  const std::size_t width = static_cast<std::size_t>(model_.capabilities().n_hidden_in);
  for (const SeqId seq : sequences) {
    const std::size_t n = state_of(seq).rows->n_raw() * width;
    state_of(seq).rows->take_encoded(rest.first(n));
    rest = rest.subspan(n);
  }
  return Status();
}

// Whether a head can go on reading behind the first `n_seen` tokens.
bool DraftModelDrafter::continues(const SeqState& state, std::size_t n_seen) {
  return n_seen > state.start && state.rows->begin() < n_seen;
}

// Where it begins else: at the first token whose state before is known.
std::size_t DraftModelDrafter::window_start(const HiddenRows& rows) const {
  return rows.begin() == 0 && head_->reads_first ? 0 : rows.begin() + 1;
}

// Else the target took what is before it from elsewhere, or has not read it yet.
bool DraftModelDrafter::can_guess(SeqId seq, std::span<const Token> text) const {
  if (!head_) return true;
  const HiddenRows& rows = *sequences_[static_cast<std::size_t>(seq)].rows;
  return rows.end() + 1 >= text.size() && window_start(rows) < text.size();
}

// A head that has missed too much of the text begins anew with the last tokens of it.
Status DraftModelDrafter::reach_window(const DraftRequest& request) {
  SeqState& state = state_of(request.seq);
  const HiddenRows& rows = *state.rows;
  const std::string wrong = rows.check_integrity(request.text);
  if (!wrong.empty()) return internal_error("its hidden states are not the text's: " + wrong);
  if (continues(state, state.n_seen)) return Status();
  state.start = state.n_seen = window_start(rows);
  return model_.truncate(request.seq, 0);
}

}  // namespace outrider
