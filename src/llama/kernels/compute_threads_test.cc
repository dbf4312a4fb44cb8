// Which threads ggml's graphs are computed by: ours while a ComputeThreads lives, and only then.
#include "llama/kernels/compute_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "llama.h"
#include "llama/base/backend.h"
#include "llama/model/llama_model.h"
#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

// What the threads of a graph saw.
struct Seen {
  std::atomic<int> calls{0};
  std::atomic<int> ours{0};         // of them, on a thread of a team
  std::atomic<int> wrong_index{0};  // ggml's number is not the team's
};

// A graph of `n_nodes` operations, one behind the other, each counted in `seen` by every thread;
// the last gives `value` + n_nodes in all its elements.
class Counting {
 public:
  explicit Counting(int n_nodes) : context_(ggml_init({std::size_t{4} << 20, nullptr, false})) {
    x_ = ggml_new_tensor_1d(context_.get(), GGML_TYPE_F32, kElements);
    ggml_tensor* t = x_;
    for (int i = 0; i < n_nodes; ++i) {
      t = ggml_map_custom1(context_.get(), t, add_one, GGML_N_TASKS_MAX, &seen_);
    }
    out_ = t;
    graph_ =
        ggml_new_graph_custom(context_.get(), 2 * static_cast<std::size_t>(n_nodes) + 8, false);
    ggml_build_forward_expand(graph_, out_);
  }

  void compute(int n_threads, float value) {
    const ggml_backend_ptr backend(ggml_backend_cpu_init());
    ggml_backend_cpu_set_n_threads(backend.get(), n_threads);
    for (int i = 0; i < kElements; ++i) ggml_set_f32_1d(x_, i, value);
    ASSERT_EQ(ggml_backend_graph_compute(backend.get(), graph_), GGML_STATUS_SUCCESS);
  }

  std::vector<float> out() const {
    const auto* data = static_cast<const float*>(out_->data);
    return {data, data + kElements};
  }
  static constexpr int kElements = 23;
  Seen& seen() { return seen_; }

 private:
  static void add_one(ggml_tensor* to, const ggml_tensor* from, int ith, int nth, void* data) {
    auto& seen = *static_cast<Seen*>(data);
    ++seen.calls;
    if (const threads::Team::Member* here = threads::Team::here(); here != nullptr) {
      ++seen.ours;
      if (here->index != ith || here->n != nth) ++seen.wrong_index;
    }
    for (int i = ith; i < kElements; i += nth) {
      static_cast<float*>(to->data)[i] = static_cast<const float*>(from->data)[i] + 1.0F;
    }
  }

  Seen seen_;
  ggml_context_ptr context_;
  ggml_tensor* x_ = nullptr;
  ggml_tensor* out_ = nullptr;
  ggml_cgraph* graph_ = nullptr;
};

class ComputeThreadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ensure_backend();
    if (!has_own_threads()) GTEST_SKIP() << "this build uses ggml's threads";
  }
  std::shared_ptr<threads::Teams> teams_ = threads::Teams::shared();
};

TEST_F(ComputeThreadsTest, AGraphIsComputedByThemAndGivesTheSame) {
  constexpr int kNodes = 200;
  Counting graph(kNodes);
  int calls = 0;
  for (const int n_threads : {2, 5, 3, 8, 2}) {
    const ComputeThreads own(*teams_);
    graph.compute(n_threads, static_cast<float>(n_threads));
    calls += n_threads * kNodes;
    EXPECT_EQ(graph.seen().calls.load(), calls);
    EXPECT_EQ(graph.seen().ours.load(), calls);
    EXPECT_EQ(graph.seen().wrong_index.load(), 0);
    EXPECT_EQ(graph.out(),
              std::vector<float>(Counting::kElements, static_cast<float>(n_threads + kNodes)));
  }
}

TEST_F(ComputeThreadsTest, WithoutOneOpenMpComputesAsBefore) {
  Counting graph(20);
  graph.compute(3, 0);
  EXPECT_EQ(graph.seen().calls.load(), 60);
  EXPECT_EQ(graph.seen().ours.load(), 0);
  {
    const ComputeThreads own(*teams_);
    std::thread([&] { graph.compute(3, 0); }).join();  // not on this thread
  }
  EXPECT_EQ(graph.seen().ours.load(), 0);
  EXPECT_EQ(graph.seen().calls.load(), 120);
}

TEST_F(ComputeThreadsTest, SeveralThreadsComputeAtOnce) {
  constexpr int kNodes = 300;
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&, i] {
      Counting graph(kNodes);
      for (int round = 0; round < 5; ++round) {
        const ComputeThreads own(*teams_);
        graph.compute(2 + i, static_cast<float>(i));
        if (graph.out() !=
            std::vector<float>(Counting::kElements, static_cast<float>(i + kNodes))) {
          ++wrong;
        }
      }
      if (graph.seen().ours.load() != 5 * (2 + i) * kNodes) ++wrong;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

// Where they can be had they are there: GCC, Linux, and a ggml that was built for OpenMP.
TEST(OwnThreads, AreBuiltInWhereTheyCanBe) {
#if defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
  const std::string ggml = llama_print_system_info();
  if (ggml.find("OPENMP = 1") == std::string::npos) GTEST_SKIP() << "ggml without OpenMP: " << ggml;
  EXPECT_TRUE(has_own_threads());
#else
  GTEST_SKIP() << "not here";
#endif
}

class OwnThreadsOfAModel : public testing::TinyModelTest {};

// The product's own way, not only this file's.
TEST_F(OwnThreadsOfAModel, ComputeItsEvaluations) {
  if (!has_own_threads()) GTEST_SKIP() << "this build uses ggml's threads";
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 64, .n_threads = 2});
  const std::int64_t before = graphs_by_own_threads();
  testing::step(*model, 0, 7);
  EXPECT_GT(graphs_by_own_threads(), before);
  const std::unique_ptr<LlamaModel> alone = make({.n_ctx = 64, .n_threads = 1});
  const std::int64_t between = graphs_by_own_threads();
  testing::step(*alone, 0, 7);
  EXPECT_EQ(graphs_by_own_threads(), between) << "one thread has nobody to meet";
}

}  // namespace
}  // namespace outrider::llama
