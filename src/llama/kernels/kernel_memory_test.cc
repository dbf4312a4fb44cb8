// What packed weights take in memory, beside the same weights in their files: at most 3 % more, and
// the file's pages that they were read from are given back. The one exception: an output that is
// the table of tokens as well is packed beside the table, which stays mapped.
// (src/kernels/packed_test.cc has every type by itself.)
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/usable_processors.h"
#include "ggml-cpp.h"
#include "ggml.h"
#include "llama/base/backend.h"
#include "llama/files/matrices.h"
#include "llama/files/model_file.h"
#include "llama/kernels/kernel_buffer.h"
#include "llama/kernels/own_kernels.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {
namespace {

#if defined(__linux__)
// Bytes of the mapped file that the process holds. The system names it without links in its path.
std::uint64_t held_of_file(const std::string& given) {
  const std::string path = std::filesystem::canonical(given);
  std::ifstream maps("/proc/self/smaps");
  std::uint64_t kilobytes = 0;
  bool is_file = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' ')) {
      is_file = line.ends_with(path);
    } else if (is_file && line.starts_with("Rss:")) {
      kilobytes += std::stoull(line.substr(4));
    }
  }
  return 1024 * kilobytes;
}

TEST(PackedMemory, OfAMappedFileOnlyWhatIsNotPackedIsHeld) {
  ensure_backend();
  if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
  const testing::TempDir dir;
  const std::string path = dir.file("tiny.gguf");
  testing::TinyModelOptions tiny;
  tiny.n_embd = 512;
  tiny.n_ff = 4096;
  ASSERT_TRUE(testing::write_tiny_gguf(path, tiny).ok());
  const auto size = std::filesystem::file_size(path);
  // As where the folder for temporary files is a link.
  const std::string link = dir.file("link");
  std::filesystem::create_directory_symlink(std::filesystem::path(path).parent_path(), link);
  const std::string linked = link + "/tiny.gguf";
  for (const KernelChoice choice : {KernelChoice::kAuto, KernelChoice::kStock}) {
    FileOptions options;
    options.n_gpu_layers = 0;
    options.kernels = choice;
    const Result<std::shared_ptr<ModelFile>> file = ModelFile::load(linked, options, {});
    ASSERT_TRUE(file.ok()) << file.status().message();
    if (choice == KernelChoice::kAuto) {
      EXPECT_GT((*file)->facts().kernels.packed_bytes, size * 3 / 4);
      EXPECT_LT(held_of_file(linked), size / 4);
    } else {
      EXPECT_GT(held_of_file(linked), size * 3 / 4) << "as llama.cpp has it";
    }
  }
}

#endif

// A matrix that loads set, from memory that is no file's.
class KernelLoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ensure_backend();
    if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
    context_.reset(ggml_init({ggml_tensor_overhead() * 2, nullptr, true}));
    weights_ = ggml_new_tensor_2d(context_.get(), GGML_TYPE_Q8_0, 256, 8);
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), kernel_buffer_type()));
    bytes_.resize(ggml_nbytes(weights_));
  }
  // What `load` is behind it.
  KernelLoad set_in(const KernelLoad& load) {
    kernel_load() = load;
    ggml_backend_tensor_set(weights_, bytes_.data(), 0, bytes_.size());
    return std::exchange(kernel_load(), {});
  }

  ggml_context_ptr context_;
  ggml_backend_buffer_ptr buffer_;
  ggml_tensor* weights_ = nullptr;
  std::vector<char> bytes_;
};

#if defined(__linux__)
// Else each small tensor of a file that is not mapped reads the system's table of mappings.
TEST_F(KernelLoadTest, MemoryThatIsNoFilesIsLookedUpOnce) {
  const MappedPages found = set_in({}).pages;
  EXPECT_TRUE(found.holds(bytes_.data(), bytes_.size()));
  EXPECT_FALSE(found.of_file);
}
#endif

// Large ones lie elsewhere each time.
TEST_F(KernelLoadTest, OfAFileThatIsNotMappedNothingIsLookedUp) {
  EXPECT_EQ(set_in({.mapped = false}).pages.end, 0U);
  const KernelsForLoad load(KernelChoice::kAuto, true, /*locks=*/false, /*mapped=*/false);
  EXPECT_FALSE(kernel_load().mapped);
}

TEST_F(KernelLoadTest, ProcessorsAreAskedForOnceInALoadAndEachTimeOutsideOfOne) {
  EXPECT_EQ(set_in({.wanted = true}).n_processors, usable_processors());
  const std::int32_t known = usable_processors() == 1 ? 2 : 1;
  EXPECT_EQ(set_in({.wanted = true, .n_processors = known}).n_processors, known);
  EXPECT_EQ(set_in({}).n_processors, 0) << "a worker's";
}

class RealModelMemory : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("OUTRIDER_MODELS_DIR");
    if (folder == nullptr) GTEST_SKIP() << "OUTRIDER_MODELS_DIR does not name the models";
    path_ = std::filesystem::path(folder) / GetParam();
    ASSERT_TRUE(std::filesystem::exists(path_)) << path_ << ": run ./dev models";
    ensure_backend();
    if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
  }
  std::string path_;
};

TEST_P(RealModelMemory, PackedWeightsTakeAtMostThreePerCentMoreThanInTheFile) {
  FileOptions options;
  options.n_gpu_layers = 0;
  const Result<std::shared_ptr<ModelFile>> file = ModelFile::load(path_, options, {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const KernelUse& use = (*file)->facts().kernels;
  EXPECT_TRUE(use.own) << use.reason;
  EXPECT_LE(static_cast<double>(use.packed_bytes),
            1.03 * static_cast<double>(use.packed_in_file_bytes));

  // What was packed is what the file's header says would be, the tied output among it.
  const Result<std::vector<Matrix>> matrices = read_matrices(path_);
  ASSERT_TRUE(matrices.ok());
  std::uint64_t expected = 0;
  std::uint64_t tied = 0;
  for (const Matrix& matrix : *matrices) {
    if (!matrix.own_kernels_take_it) continue;
    expected += matrix.bytes;
    if (matrix.name == "token_embd.weight") tied += matrix.bytes;
  }
  EXPECT_EQ(use.packed_in_file_bytes, expected);
  RecordProperty("packed", std::to_string(use.packed_bytes));
  RecordProperty("in_file", std::to_string(use.packed_in_file_bytes));
  RecordProperty("packed_beside_the_mapped_table", std::to_string(tied));
}

INSTANTIATE_TEST_SUITE_P(Models, RealModelMemory,
                         ::testing::Values("smollm2-q4_0.gguf", "gemma-3-270m-q4_k_m.gguf",
                                           "draft-q4_k_s.gguf", "draft-q3_k_s.gguf"),
                         [](const ::testing::TestParamInfo<const char*>& test) {
                           std::string name = test.param;
                           for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace outrider::llama
