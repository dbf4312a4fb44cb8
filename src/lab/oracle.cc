#include "lab/oracle.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "lab/draft_walk.h"

namespace outrider::lab {
namespace {

// Goes on as long as what is there is right.
class Foresight : public DraftGuide {
 public:
  Foresight(const TokenTree& tree, std::span<const Token> text) : tree_(tree), text_(text) {}

  float chance(std::int32_t /*depth*/, float confidence) const override { return confidence; }

  bool another_pass(float /*tip_chance*/, std::int32_t tip_depth) override {
    return right_guesses(tree_, text_) >= static_cast<std::size_t>(tip_depth);
  }

 private:
  const TokenTree& tree_;
  std::span<const Token> text_;
};

class Oracle {
 public:
  Oracle(std::span<const Token> prompt, std::span<const Token> said,
         std::span<const OracleDrafter> drafters, const OracleOptions& options)
      : text_(prompt.begin(), prompt.end()),
        n_prompt_(prompt.size()),
        drafters_(drafters),
        options_(options),
        right_(said.size(), std::vector<std::size_t>(drafters.size(), 0)) {
    text_.insert(text_.end(), said.begin(), said.end());
  }

  // Asks everybody at every place.
  Status look(Sampler& sampler) {
    sampler.begin(std::span(text_).first(n_prompt_), options_.seed);
    for (const OracleDrafter& d : drafters_) OUTRIDER_RETURN_IF_ERROR(d.drafter->begin(0, 0));
    for (std::size_t place = 1; place < right_.size(); ++place) {
      if (options_.interrupt != nullptr && options_.interrupt->load()) {
        return cancelled("interrupted");
      }
      sampler.accept(text_[n_prompt_ + place - 1]);
      for (std::size_t i = 0; i < drafters_.size() && place >= options_.begun; ++i) {
        OUTRIDER_RETURN_IF_ERROR(ask(*drafters_[i].drafter, sampler, place, right_[place][i]));
      }
    }
    for (const OracleDrafter& d : drafters_) d.drafter->end(0);
    return Status();
  }

  double least_ms() const {
    const std::size_t n = right_.size();
    std::vector<double> rest(n + 1, 0.0);  // [place] the least time from there on
    for (std::size_t place = n; place-- > options_.begun;) {
      rest[place] = step_ms(1) + rest[place + 1];
      for (std::size_t i = 0; i < drafters_.size(); ++i) {
        double guesses_ms = 0.0;
        for (std::size_t sent = 1; sent <= right_[place][i] && place + sent < n; ++sent) {
          guesses_ms += sent == 1 ? drafters_[i].first_ms : drafters_[i].further_ms;
          rest[place] =
              std::min(rest[place], guesses_ms + step_ms(1 + sent) + rest[place + sent + 1]);
        }
      }
    }
    return rest[std::min(options_.begun, n)];
  }

 private:
  Status ask(Drafter& drafter, Sampler& sampler, std::size_t place, std::size_t& right) {
    const std::span<const Token> decided = std::span(text_).first(n_prompt_ + place);
    const std::span<const Token> rest = std::span(text_).subspan(n_prompt_ + place);
    TokenTree tree(decided.back());
    Foresight guide(tree, rest);
    DraftRequest request{.seq = 0,
                         .text = decided,
                         .seed = options_.seed,
                         .sampler = &sampler,
                         .max_nodes = options_.width - 1,
                         .shape = options_.shape,
                         .guide = &guide,
                         .mask = 1,
                         .tree = &tree};
    drafter.accept(0, decided);
    OUTRIDER_RETURN_IF_ERROR(draft_one(drafter, request));
    right = right_guesses(tree, rest);
    return Status();
  }

  // A step of at least `tokens`: where a wider one takes less, it is filled with anything.
  double step_ms(std::size_t tokens) const {
    double least = std::numeric_limits<double>::infinity();
    for (std::int32_t width = static_cast<std::int32_t>(tokens); width <= options_.width; ++width) {
      least = std::min(least, options_.step_ms(width));
    }
    return least;
  }

  std::vector<Token> text_;
  std::size_t n_prompt_;
  std::span<const OracleDrafter> drafters_;
  const OracleOptions& options_;
  std::vector<std::vector<std::size_t>> right_;  // [place][drafter]
};

}  // namespace

Result<double> oracle_ms(std::span<const Token> prompt, std::span<const Token> said,
                         Sampler& sampler, std::span<const OracleDrafter> drafters,
                         const OracleOptions& options) {
  Oracle oracle(prompt, said, drafters, options);
  OUTRIDER_RETURN_IF_ERROR(oracle.look(sampler));
  return oracle.least_ms();
}

}  // namespace outrider::lab
