// The rules on real files: ten thousand texts of a tiny model under each of them, against the
// chances that its own logits give; with a draft of its own vocabulary, and with one of another.
#include <gtest/gtest.h>

#include <optional>

#include "backend/vocabulary_side.h"
#include "draft/translated/translated_model.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/chi_square.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_pair.h"
#include "tests/pair.h"

namespace outrider {
namespace {

using testing::OpenModel;

constexpr std::int32_t kKept = 4;       // candidates of a token, by top-k
constexpr std::int32_t kSequences = 8;  // at once

SamplingOptions sampling() {
  SamplingOptions options;
  options.temperature = 1.2f;
  options.top_k = kKept;
  options.top_p = 1.0f;
  options.min_p = 0.0f;
  return options;
}

// All texts of two tokens with their chances.
struct Expected {
  std::vector<std::vector<Token>> texts;
  std::vector<double> chances;
};

// The parameter: whether the draft has another vocabulary.
class Rules : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    testing::TinyPairOptions pair;
    pair.noise = GetParam() ? 0.1f : 0.3f;
    pair.other_vocabulary = GetParam();
    pair.draft_vocabulary.tokenizer = testing::TinyTokenizer::kBpe;
    pair.draft_vocabulary.pieces = {"the", " and", "in", "ing", "END"};
    const Status written =
        testing::write_tiny_pair(dir_.file("target.gguf"), dir_.file("draft.gguf"), pair);
    ASSERT_TRUE(written.ok()) << written.message();
    ModelOptions options;
    options.n_ctx = 64;
    options.n_batch = 64;
    options.n_threads = 1;
    options.n_sequences = kSequences;
    target_ = std::make_unique<OpenModel>(dir_.file("target.gguf"), options,
                                          llama::ContextSettings{}, true);
    draft_ = std::make_unique<OpenModel>(dir_.file("draft.gguf"), options, llama::ContextSettings{},
                                         true);
    ASSERT_GE(target_->model->capabilities().max_leaves, kKept);
    if (!GetParam()) return;
    Result<VocabularyMap> map =
        VocabularyMap::create(side_of(vocabulary()), side_of(draft_->file->vocabulary()), {});
    ASSERT_TRUE(map.ok()) << map.status().message();
    map_.emplace(std::move(*map));
    translated_ = std::make_unique<TranslatedModel>(*draft_->model, *map_);
  }

  LanguageModel& drafting() {
    return translated_ ? static_cast<LanguageModel&>(*translated_) : *draft_->model;
  }

  const llama::LlamaVocabulary& vocabulary() const { return target_->file->vocabulary(); }

  std::unique_ptr<Sampler> sampler() const {
    Result<std::unique_ptr<Sampler>> made = llama::make_sampler(sampling(), vocabulary());
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
  }

  // From the rows of one tree: the prompt's last token and all candidates below it.
  Expected expected(const std::vector<Token>& prompt) {
    const std::unique_ptr<Sampler> chain = sampler();
    llama::LlamaModel& model = *target_->model;
    TokenTree tree(prompt.back());
    const std::span<const Token> prefix(prompt.data(), prompt.size() - 1);
    Expected result;
    const EvalItem root{.seq = 0, .prefix = prefix, .tree = &tree};
    EXPECT_TRUE(model.evaluate({&root, 1}).ok());
    const Pmf first = Pmf::of(chain->apply(model.logits(0, kRoot)));
    for (std::size_t i = 0; i < first.size(); ++i) tree.add(kRoot, first.token(i), 0.5f, 1);
    const EvalItem all{.seq = 0, .prefix = {}, .tree = &tree, .first_new = 1};
    EXPECT_TRUE(model.evaluate({&all, 1}).ok());
    for (std::size_t i = 0; i < first.size(); ++i) {
      const Pmf second = Pmf::of(chain->apply(model.logits(0, static_cast<NodeId>(i) + 1)));
      for (std::size_t k = 0; k < second.size(); ++k) {
        result.texts.push_back({first.token(i), second.token(k)});
        result.chances.push_back(first.p(i) * second.p(k));
      }
    }
    EXPECT_TRUE(model.truncate(0, 0).ok());
    return result;
  }

  testing::TempDir dir_;
  std::unique_ptr<OpenModel> target_;
  std::unique_ptr<OpenModel> draft_;
  std::optional<VocabularyMap> map_;
  std::unique_ptr<TranslatedModel> translated_;  // null: the vocabularies are the same
};

TEST_P(Rules, TenThousandTextsOfEveryRuleFollowTheModelsOwnChances) {
  constexpr std::uint64_t kTexts = testing::kSanitized ? 1000 : 10000;
  const std::uint64_t seed = testing::test_seed(1000000);
  const std::vector<Token> prompt = {1, 80, 90};
  const Expected want = expected(prompt);
  ASSERT_EQ(want.texts.size(), static_cast<std::size_t>(kKept * kKept));
  DraftModelDrafter drafter(drafting(), vocabulary().size(), {});
  Engine engine(*target_->model, target_->file->text_vocabulary(), {&drafter});
  for (const AcceptanceRule rule :
       {AcceptanceRule::kCoupled, AcceptanceRule::kRejection, AcceptanceRule::kBlock}) {
    for (const std::int32_t branches : {1, 3}) {
      if (rule == AcceptanceRule::kBlock && branches > 1) continue;
      std::vector<std::int64_t> counts(want.texts.size(), 0);
      std::int64_t accepted = 0;
      std::uint64_t begun = 0;
      std::vector<RequestId> running;
      while (begun < kTexts || !running.empty()) {
        while (begun < kTexts && running.size() < kSequences) {
          Request r;
          r.prompt = prompt;
          r.sampler = sampler();
          r.seed = seed + begun++;
          r.max_tokens = 2;
          r.rule = rule;
          r.draft = {.branches = branches, .split_p = 0.05f};
          const Result<RequestId> id = engine.add(std::move(r));
          ASSERT_TRUE(id.ok()) << id.status().message();
          running.push_back(*id);
        }
        engine.step();
        std::erase_if(running, [&](RequestId id) {
          const Result<Completion> done = engine.take(id);
          if (!done.ok()) return false;
          const std::size_t at = static_cast<std::size_t>(
              std::find(want.texts.begin(), want.texts.end(), done->tokens) - want.texts.begin());
          EXPECT_LT(at, counts.size()) << "a text that the chain forbids";
          if (at < counts.size()) ++counts[at];
          accepted += done->speculation.accepted;
          return true;
        });
        ASSERT_FALSE(HasFailure());
      }
      EXPECT_GT(testing::chi_square_p(counts, want.chances), testing::least_p())
          << "rule " << static_cast<int>(rule) << ", " << branches << " branches";
      EXPECT_GT(accepted, static_cast<std::int64_t>(kTexts / 20)) << "drafts were at work";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Drafts, Rules, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& instance) {
                           return instance.param ? "OfAnotherVocabulary" : "OfTheSameVocabulary";
                         });

}  // namespace
}  // namespace outrider
