// FakeLoader: a ModelLoader whose models are hand-written numbers, and which waits, fails and is
// cancelled on command.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "draft/model/draft_model.h"
#include "serve/loader.h"
#include "testing/fake_model.h"

namespace outrider::testing {

// As FakeFile::load_steps: loading goes on until it is cancelled.
inline constexpr std::int32_t kEndlessLoad = std::numeric_limits<std::int32_t>::max();

// What a "file" of the fake loader is. Its name is ModelOptions::path.
struct FakeFile {
  std::int32_t n_vocab = 12;
  std::uint64_t seed = 1;  // of its numbers
  float spread = 3.0f;
  float noise = 0.0f;  // 0: seed's numbers; above: these with noise, as a draft of them
  Token end = kNoToken;
  std::map<Token, std::string> pieces;  // tokens that say more than a letter
  bool chat = false;                    // the vocabulary has a chat format (FakeVocabulary)
  SpecialTokens special;                // of the vocabulary; in `pieces` they have no text
  Capabilities capabilities;      // n_vocab, n_ctx, n_batch and n_sequences come from elsewhere
  std::optional<Status> failure;  // of loading
  std::int32_t load_steps = 0;    // progress reports before the last one
  // Called at the end of each evaluation of its models, targets or drafts, on the thread that
  // evaluates. By it a test holds them (testing/step_gate.h).
  std::function<void()> on_evaluated;
  bool throws = false;      // loading ends with an exception
  std::uint64_t bytes = 0;  // what it takes, and is estimated to take
};

// What the models of a loader take together. Any thread.
class FakeMemory {
 public:
  void take(std::uint64_t bytes) {
    const std::uint64_t now = taken_ += bytes;
    std::uint64_t most = most_.load();
    while (most < now && !most_.compare_exchange_weak(most, now)) {
    }
  }
  void give_back(std::uint64_t bytes) {
    taken_ -= bytes;
    if (on_free_) on_free_();
  }
  // Called while a model is freed, on the thread that frees it. Before anything is loaded.
  void on_free(std::function<void()> called) { on_free_ = std::move(called); }
  std::uint64_t taken() const { return taken_.load(); }
  std::uint64_t most() const { return most_.load(); }  // ever at once

 private:
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> most_{0};
  std::function<void()> on_free_;
};

// A model's part of it, while it lives.
class FakeBytes {
 public:
  FakeBytes(std::shared_ptr<FakeMemory> memory, std::uint64_t bytes)
      : memory_(std::move(memory)), bytes_(bytes) {
    memory_->take(bytes_);
  }
  ~FakeBytes() { memory_->give_back(bytes_); }
  FakeBytes(const FakeBytes&) = delete;
  FakeBytes& operator=(const FakeBytes&) = delete;

 private:
  std::shared_ptr<FakeMemory> memory_;
  std::uint64_t bytes_;
};

class FakeTarget : public Target {
 public:
  // Counts its evaluations in `n_begun`, which outlives it.
  FakeTarget(const FakeFile& file, const ModelOptions& options, std::atomic<std::int64_t>& n_begun,
             std::shared_ptr<FakeMemory> memory = std::make_shared<FakeMemory>())
      : bytes_(std::move(memory), file.bytes),
        vocabulary_(file.n_vocab, file.end, file.pieces),
        model_(capabilities_of(file, options), rows_of(file)) {
    if (file.chat) vocabulary_.use_chat();
    vocabulary_.set_special(file.special);
    info_.has_chat_template = info_.chat_tools = info_.chat_reasoning = file.chat;
    info_.path = options.path;
    info_.architecture = "fake";
    info_.n_ctx_train = options.n_ctx;
    exactness_.kind = Exactness::Kind::kExact;
    exact_mode_ = options.exact;
    if (file.on_evaluated) {
      model_.on_evaluated([called = file.on_evaluated](std::int64_t) { called(); });
    }
    model_.on_evaluate([this, &n_begun] {
      ++n_begun;
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!death_.ok()) model_.die(death_);
    });
  }

  LanguageModel& model() override { return model_; }
  FakeModel& fake_model() { return model_; }
  // Any thread: the decode thread lets the model die in its next evaluation.
  void die_in_next_step(Status why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    death_ = std::move(why);
  }
  const Capabilities& capabilities() const override { return model_.capabilities(); }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  const Exactness& exactness() const override { return exactness_; }
  ExactMode exact_mode() const override { return exact_mode_; }
  const ModelInfo& info() const override { return info_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  // As if its process were another one: "isolated" in its name.
  std::string state_identity() const override {
    return info_.path.find("isolated") == std::string::npos ? "fake " + info_.path : "";
  }
  Result<std::unique_ptr<Sampler>> make_sampler(const SamplingOptions& options) const override {
    OUTRIDER_RETURN_IF_ERROR(validate(options));
    return std::unique_ptr<Sampler>(std::make_unique<FakeSampler>(options.temperature));
  }

  static Capabilities capabilities_of(const FakeFile& file, const ModelOptions& options) {
    Capabilities c = file.capabilities;
    c.n_vocab = file.n_vocab;
    c.n_ctx = options.n_ctx;
    c.n_batch = options.n_batch;
    c.n_sequences = options.n_sequences;
    if (c.max_width == 0) c.max_width = 16;
    return c;
  }
  static RowFunction rows_of(const FakeFile& file) {
    RowFunction rows = random_rows(file.n_vocab, file.seed, file.spread);
    return file.noise > 0.0f ? noisy_rows(std::move(rows), file.seed + 1, file.noise) : rows;
  }

 private:
  FakeBytes bytes_;
  FakeVocabulary vocabulary_;
  FakeModel model_;
  Exactness exactness_;
  ExactMode exact_mode_ = ExactMode::kAuto;
  ModelInfo info_;
  std::vector<std::string> notes_;
  std::mutex mutex_;  // guards what follows
  Status death_;
};

// A draft's, in the order in which they need each other.
struct FakeDraftModels {
  FakeBytes bytes;
  std::shared_ptr<const Target> target;
  FakeModel model;
};

class FakeLoader : public ModelLoader {
 public:
  // Before anything is loaded from it, or from one thread meanwhile.
  void add(const std::string& path, FakeFile file) {
    const std::lock_guard<std::mutex> lock(mutex_);
    files_[path] = std::move(file);
  }
  // The files that most tests need: "target", a "twin" with the same numbers, "other", a "draft" of
  // the first, and ones that are "slow" (also a "slow draft": loading ends when it is cancelled),
  // "broken", "throwing" or "small".
  void add_usual_files();
  // While held, loading stands still at its first progress report (a cancel ends it).
  void hold(bool held) { held_.store(held); }
  int loads() const { return loads_.load(); }  // begun
  int loads_of(const std::string& path) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return loads_of_[path];
  }
  // What the last load of this file was told of its head (ModelOptions::head).
  std::string head_of(const std::string& path) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return heads_[path];
  }
  bool loading() const { return loading_.load() > 0; }  // right now
  // Evaluations that targets of this loader have begun.
  std::int64_t evaluations() const { return evaluations_.load(); }
  FakeMemory& memory() const { return *memory_; }

  Result<std::unique_ptr<Target>> load_target(const ModelOptions& options,
                                              const LoadHooks& hooks) override {
    const Result<FakeFile> file = open(options, hooks);
    if (!file.ok()) return file.status();
    return std::unique_ptr<Target>(
        std::make_unique<FakeTarget>(*file, options, evaluations_, memory_));
  }

  Result<std::unique_ptr<Draft>> load_draft(const ModelOptions& options,
                                            std::shared_ptr<const Target> target,
                                            const LoadHooks& hooks) override {
    const Result<FakeFile> file = open(options, hooks);
    if (!file.ok()) return file.status();
    if (file->n_vocab < target->vocabulary().size()) {
      return unsupported("'" + options.path + "' has another vocabulary");
    }
    const std::shared_ptr<FakeDraftModels> models(new FakeDraftModels{
        .bytes = FakeBytes(memory_, file->bytes),
        .target = std::move(target),
        .model =
            FakeModel(FakeTarget::capabilities_of(*file, options), FakeTarget::rows_of(*file))});
    if (file->on_evaluated) {
      models->model.on_evaluated([called = file->on_evaluated](std::int64_t) { called(); });
    }
    const Vocabulary& vocabulary = models->target->vocabulary();
    return std::make_unique<Draft>(
        Draft{.models = models,
              .drafter = std::make_unique<DraftModelDrafter>(
                  models->model, vocabulary.size(),
                  [&vocabulary](Token token) { return vocabulary.is_end_of_generation(token); }),
              .info = {.path = options.path}});
  }

  Result<std::uint64_t> estimate_memory(const ModelOptions& options) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::map<std::string, FakeFile>::const_iterator found = files_.find(options.path);
    if (found == files_.end()) return not_found("'" + options.path + "' does not exist");
    return found->second.bytes;
  }

 private:
  Result<FakeFile> open(const ModelOptions& options, const LoadHooks& hooks);
  // What loading does before it fails or comes to its end. kCancelled.
  Status go_through(const FakeFile& file, const LoadHooks& hooks);

  std::mutex mutex_;
  std::map<std::string, FakeFile> files_;
  std::map<std::string, int> loads_of_;
  std::map<std::string, std::string> heads_;
  std::shared_ptr<FakeMemory> memory_ = std::make_shared<FakeMemory>();
  std::atomic<bool> held_{false};
  std::atomic<int> loads_{0};
  std::atomic<int> loading_{0};
  std::atomic<std::int64_t> evaluations_{0};
};

}  // namespace outrider::testing
