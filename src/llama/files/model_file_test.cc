#include "llama/files/model_file.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "llama/files/gguf_header.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/gguf_damage.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {
namespace {

class ModelFileTest : public ::testing::Test {
 protected:
  std::string write_tiny(const std::string& name, const testing::TinyModelOptions& options = {}) {
    const std::string path = dir_.file(name);
    const Status status = testing::write_tiny_gguf(path, options);
    EXPECT_TRUE(status.ok()) << status.message();
    return path;
  }

  std::string write_bytes(const std::string& name, const std::string& bytes) {
    const std::string path = dir_.file(name);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // The Status of loading `path`, which must fail.
  Status failure(const std::string& path) {
    Result<std::shared_ptr<ModelFile>> file = ModelFile::load(path, 0, true, LoadHooks{});
    EXPECT_FALSE(file.ok());
    return file.status();
  }

  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }

  testing::TempDir dir_;
};

void expect_says(const Status& status, StatusCode code, const std::vector<std::string>& words) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string& word : words) {
    EXPECT_NE(status.message().find(word), std::string::npos)
        << "'" << word << "' is not in: " << status.message();
  }
}

TEST_F(ModelFileTest, AMissingFileIsNotFound) {
  expect_says(failure(dir_.file("none.gguf")), StatusCode::kNotFound, {"none.gguf", "no file"});
  expect_says(failure(""), StatusCode::kInvalidArgument, {"GGUF"});
}

TEST_F(ModelFileTest, AFolderIsRefused) {
  std::filesystem::create_directory(dir_.file("folder"));
  expect_says(failure(dir_.file("folder")), StatusCode::kInvalidArgument, {"folder", "GGUF file"});
}

TEST_F(ModelFileTest, AFileBelowAFileIsNotFound) {
  const std::string path = write_bytes("plain", "x");
  expect_says(failure(path + "/model.gguf"), StatusCode::kNotFound, {"model.gguf"});
}

TEST_F(ModelFileTest, AnotherFormatIsRefusedWithItsFirstBytes) {
  expect_says(failure(write_bytes("a.gguf", "PK\x03\x04 and more")), StatusCode::kInvalidArgument,
              {"a.gguf", "not a GGUF file", "PK\\x03\\x04"});
  expect_says(failure(write_bytes("b.gguf", "GG")), StatusCode::kInvalidArgument,
              {"not a GGUF file", "\"GG\""});
  expect_says(failure(write_bytes("c.gguf", "")), StatusCode::kInvalidArgument, {"empty"});
}

TEST_F(ModelFileTest, ADeviceIsRefused) {
  expect_says(failure("/dev/null"), StatusCode::kInvalidArgument, {"not a regular file"});
}

TEST_F(ModelFileTest, AFileCutOffAnywhereIsReportedAsDamaged) {
  const std::string whole = bytes_of(write_tiny("whole.gguf"));
  ASSERT_GT(whole.size(), 10000u);
  std::vector<std::size_t> sizes{4, 8, 16, 24, 100, 1000, whole.size() / 2, whole.size() - 1};
  for (std::size_t size = 30; size < 12000; size += 997) sizes.push_back(size);
  for (const std::size_t size : sizes) {
    SCOPED_TRACE("cut to " + std::to_string(size) + " of " + std::to_string(whole.size()));
    expect_says(failure(write_bytes("cut.gguf", whole.substr(0, size))), StatusCode::kDataLoss,
                {"cut.gguf", "cut off"});
  }
}

TEST_F(ModelFileTest, AMissingTailSaysHowManyBytesThereShouldBe) {
  const std::string whole = bytes_of(write_tiny("whole.gguf"));
  const Status status = failure(write_bytes("cut.gguf", whole.substr(0, whole.size() - 4000)));
  expect_says(status, StatusCode::kDataLoss, {std::to_string(whole.size() - 4000), "fetch"});
}

TEST_F(ModelFileTest, AnUnknownVersionOrArchitectureIsUnsupported) {
  std::string bytes = bytes_of(write_tiny("whole.gguf"));
  std::string version = bytes;
  version[4] = 99;
  expect_says(failure(write_bytes("v.gguf", version)), StatusCode::kUnsupported, {"version 99"});

  // The architecture's name occurs as the value of general.architecture and in front of its keys;
  // another name of the same length everywhere keeps the file well formed.
  for (std::size_t at = 0; (at = bytes.find("llama", at)) != std::string::npos; at += 5) {
    bytes.replace(at, 5, "lxama");
  }
  expect_says(failure(write_bytes("arch.gguf", bytes)), StatusCode::kUnsupported,
              {"arch.gguf", "lxama"});
}

TEST_F(ModelFileTest, ATextWhereANumberShouldBeIsAnErrorAndEndsNoProcess) {
  const std::string good = write_tiny("good.gguf");
  for (const std::string key :
       {"split.count", "llama.block_count", "llama.context_length", "llama.embedding_length",
        "llama.attention.head_count", "llama.attention.head_count_kv"}) {
    const std::string bad = dir_.file("bad.gguf");
    const auto change = [&](gguf_context* gguf) {
      gguf_set_val_str(gguf, key.c_str(), "as many as you like");
    };
    ASSERT_TRUE(testing::copy_changed(good, bad, change, /*left_out=*/"").ok());
    EXPECT_TRUE(read_gguf_header(bad).ok()) << key << " is treated as not said";
    EXPECT_NE(failure(bad).message().find("bad.gguf"), std::string::npos) << key;
  }
}

TEST_F(ModelFileTest, FactsTellWhatTheFileHolds) {
  testing::TinyModelOptions options;
  options.name = "tiny one";
  Result<std::shared_ptr<ModelFile>> file =
      ModelFile::load(write_tiny("t.gguf", options), 0, false, LoadHooks{});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const ModelFacts& facts = (*file)->facts();
  EXPECT_EQ(facts.architecture, "llama");
  EXPECT_EQ(facts.name, "tiny one");
  EXPECT_EQ(facts.ftype_name, "Q8_0");
  EXPECT_EQ(facts.n_layer, 2);
  EXPECT_EQ(facts.n_embd, 128);
  EXPECT_EQ(facts.n_head, 2);
  EXPECT_EQ(facts.n_head_kv, 1);
  EXPECT_EQ(facts.n_ctx_train, 4096);
  EXPECT_EQ(facts.n_swa, 0);
  EXPECT_EQ(facts.head_sizes_k, std::vector<std::int32_t>{64});
  EXPECT_EQ(facts.head_sizes_v, std::vector<std::int32_t>{64});
  EXPECT_EQ(facts.n_vocab, (*file)->vocabulary().size());
  EXPECT_TRUE(facts.has_chat_template);
  EXPECT_FALSE(facts.recurrent);
  EXPECT_FALSE(facts.extra_bufts);
  EXPECT_TRUE(facts.all_on_cpu);
  EXPECT_GT(facts.n_params, 100000u);
  EXPECT_EQ((*file)->metadata("llama.block_count"), "2");
  EXPECT_EQ((*file)->metadata("no.such.key"), std::nullopt);
  EXPECT_FALSE((*file)->metadata().empty());
}

TEST_F(ModelFileTest, ACacheTypeMustBeKnownAndDivideTheHeads) {
  ModelFacts facts;
  facts.head_sizes_k = {64, 80};
  facts.head_sizes_v = {64};
  std::string why;
  EXPECT_TRUE(facts.supports_cache_type("f16", /*for_k=*/true, &why));
  EXPECT_TRUE(facts.supports_cache_type("q8_0", /*for_k=*/false, &why));
  EXPECT_EQ(why, "");
  EXPECT_FALSE(facts.supports_cache_type("q8_0", /*for_k=*/true, &why));
  EXPECT_NE(why.find("divides by 32, and this model's have 80"), std::string::npos) << why;
  EXPECT_FALSE(facts.supports_cache_type("q9_9", /*for_k=*/true, &why));
  EXPECT_NE(why.find("f16, bf16, q8_0"), std::string::npos) << why;
  EXPECT_FALSE(facts.supports_cache_type("", /*for_k=*/true, nullptr));
}

TEST_F(ModelFileTest, KvBytesCountTheBlocksOfQuantisedTypes) {
  Result<std::shared_ptr<ModelFile>> file =
      ModelFile::load(write_tiny("t.gguf"), 0, true, LoadHooks{});
  ASSERT_TRUE(file.ok());
  // Two layers, one head of 64: 128 elements are 4 blocks of 32, 34 bytes each.
  EXPECT_EQ((*file)->facts().kv_bytes_per_token("q8_0", "q8_0"), 2u * 4 * 34);
  EXPECT_EQ((*file)->facts().kv_bytes_per_token("q8_0", "f16"), 4u * 34 + 128 * 2);
  EXPECT_EQ((*file)->facts().kv_bytes_per_token("nope", "f16"), 0u);
}

TEST_F(ModelFileTest, LoadingReportsProgressUpToTheEnd) {
  std::vector<double> seen;
  LoadHooks hooks;
  hooks.progress = [&seen](double fraction) { seen.push_back(fraction); };
  Result<std::shared_ptr<ModelFile>> file = ModelFile::load(write_tiny("t.gguf"), 0, true, hooks);
  ASSERT_TRUE(file.ok());
  ASSERT_GE(seen.size(), 2u);
  EXPECT_EQ(seen.front(), 0.0);
  EXPECT_EQ(seen.back(), 1.0);
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_GE(seen[i], seen[i - 1]);
}

TEST_F(ModelFileTest, LoadingCanBeCancelledBeforeAndDuringIt) {
  const std::string path = write_tiny("t.gguf");
  std::atomic<bool> cancel{true};
  LoadHooks hooks;
  hooks.cancel = &cancel;
  Result<std::shared_ptr<ModelFile>> before = ModelFile::load(path, 0, true, hooks);
  ASSERT_FALSE(before.ok());
  expect_says(before.status(), StatusCode::kCancelled, {"t.gguf"});

  cancel = false;
  int reports = 0;
  hooks.progress = [&](double) {
    if (++reports == 2) cancel = true;
  };
  Result<std::shared_ptr<ModelFile>> during = ModelFile::load(path, 0, true, hooks);
  ASSERT_FALSE(during.ok());
  EXPECT_EQ(during.status().code(), StatusCode::kCancelled) << during.status().message();
}

// Not the file that they were read from, which nobody reads any more.
TEST_F(ModelFileTest, WhatIsLockedAreTheWeightsThatWerePacked) {
  if (testing::kSanitized) GTEST_SKIP() << "the sanitizers let mlock do nothing";
  FileOptions options;
  options.use_mlock = true;
  const auto file = ModelFile::load(write_tiny("t.gguf"), options, LoadHooks{});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const ModelFacts& facts = (*file)->facts();
  if (!facts.kernels.own) GTEST_SKIP() << facts.kernels.reason;
  if (!facts.lock_failure.empty()) GTEST_SKIP() << facts.lock_failure;
  std::uint64_t locked = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmLck:")) locked = std::stoull(line.substr(6)) << 10;
  }
  EXPECT_GE(locked, facts.kernels.packed_bytes);
  const std::uint64_t all = std::filesystem::file_size(dir_.file("t.gguf"));
  EXPECT_LT(locked, facts.kernels.packed_bytes + all) << "both, as if mapped";
}

TEST_F(ModelFileTest, LinesOfTheLogGoToTheHookWithoutNewlines) {
  std::vector<std::string> lines;
  LoadHooks hooks;
  hooks.log = [&lines](LogLevel, std::string_view line) { lines.emplace_back(line); };
  ASSERT_TRUE(ModelFile::load(write_tiny("t.gguf"), 0, true, hooks).ok());
  EXPECT_GT(lines.size(), 10u);
  for (const std::string& line : lines) EXPECT_EQ(line.find('\n'), std::string::npos) << line;
}

TEST_F(ModelFileTest, RecurrentLayersAndLatentAttentionTakeLessOfTheCache) {
  testing::TinyModelOptions options;
  options.n_head_kv = 2;
  options.n_layer = 4;
  const std::string whole = write_tiny("t.gguf", options);
  const auto changed = [&](const std::function<void(gguf_context*)>& change) {
    const std::string path = dir_.file("changed.gguf");
    EXPECT_TRUE(testing::copy_changed(whole, path, change, "").ok());
    return read_gguf_header(path);
  };
  const Result<GgufHeader> mixed = changed(
      [](gguf_context* gguf) { gguf_set_val_u32(gguf, "llama.full_attention_interval", 2); });
  ASSERT_TRUE(mixed.ok()) << mixed.status().message();
  EXPECT_EQ(mixed->n_head_kv, (std::vector<std::int32_t>{0, 2, 0, 2}));
  EXPECT_EQ(mixed->k_elements(), 2u * 2 * 64);
  const Result<GgufHeader> told = changed([](gguf_context* gguf) {
    const std::array<std::uint32_t, 4> recurrent = {1, 1, 0, 0};
    gguf_set_arr_data(gguf, "llama.attention.recurrent_layers", GGUF_TYPE_UINT32, recurrent.data(),
                      recurrent.size());
  });
  ASSERT_TRUE(told.ok()) << told.status().message();
  EXPECT_EQ(told->n_head_kv, (std::vector<std::int32_t>{0, 0, 2, 2}));
  const Result<GgufHeader> latent = changed([](gguf_context* gguf) {
    gguf_set_val_u32(gguf, "llama.attention.key_length_mla", 64);
    gguf_set_val_u32(gguf, "llama.attention.value_length_mla", 64);
  });
  ASSERT_TRUE(latent.ok()) << latent.status().message();
  EXPECT_EQ(latent->k_elements(), 4u * 2 * 64);
  EXPECT_EQ(latent->v_elements(), 0u);
}

TEST_F(ModelFileTest, NumbersOfLayersThatAreListsAreDamage) {
  const std::string whole = write_tiny("t.gguf");
  for (const char* key : {"llama.block_count", "llama.nextn_predict_layers"}) {
    const std::string path = dir_.file("changed.gguf");
    ASSERT_TRUE(testing::copy_changed(
                    whole, path,
                    [key](gguf_context* gguf) {
                      const std::uint32_t most = 2'147'483'647;
                      gguf_remove_key(gguf, key);
                      gguf_set_arr_data(gguf, key, GGUF_TYPE_UINT32, &most, 1);
                    },
                    "")
                    .ok());
    expect_says(read_gguf_header(path).status(), StatusCode::kDataLoss, {key, "one integer"});
  }
}

TEST_F(ModelFileTest, TheHeaderAloneGivesTheSizesThatMemoryDependsOn) {
  testing::TinyModelOptions options;
  options.n_head_kv = 2;
  options.n_layer = 3;
  Result<GgufHeader> header = read_gguf_header(write_tiny("t.gguf", options));
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->n_head_kv, (std::vector<std::int32_t>{2, 2, 2}));
  EXPECT_EQ(header->k_elements(), 3u * 2 * 64);
  EXPECT_EQ(header->v_elements(), 3u * 2 * 64);
  EXPECT_GT(header->tensor_bytes, header->file_bytes / 2);
  EXPECT_LE(header->tensor_bytes, header->file_bytes);
  EXPECT_GT(header->n_vocab, 256);
}

TEST_F(ModelFileTest, WantOfMemoryIsSaidAsSuchAndOnAGpuWithAWayOut) {
  for (const char* const reason :
       {": unable to allocate CUDA0 buffer", ": std::bad_alloc",
        ": allocating 17000.00 MiB on device 0: cudaMalloc failed: out of memory",
        ": mmap failed: Cannot allocate memory"}) {
    for (const bool on_gpus : {false, true}) {
      const Status status = load_failure("m.gguf", reason, on_gpus);
      expect_says(status, StatusCode::kResourceExhausted, {"'m.gguf'", reason});
      EXPECT_EQ(status.message().find("(gpu_layers)") != std::string::npos, on_gpus);
    }
  }
  const Status damaged = load_failure("m.gguf", ": missing tensor 'output.weight'", true);
  expect_says(damaged, StatusCode::kInternal, {"missing tensor"});
  EXPECT_EQ(damaged.message().find("gpu_layers"), std::string::npos);
  expect_says(load_failure("m.gguf", ": unknown model architecture: 'lxama'", true),
              StatusCode::kUnsupported, {"lxama"});
}

TEST_F(ModelFileTest, WithoutLayersThereGpusHaveNoPartExceptOfAHeadThatReadsItsTargetsWeights) {
  FileOptions options;
  EXPECT_FALSE(options.keeps_off_gpus()) << "all layers";
  options.n_gpu_layers = 0;
  EXPECT_TRUE(options.keeps_off_gpus());
  options.target_on_gpus = true;
  EXPECT_FALSE(options.keeps_off_gpus());
  options.target_on_gpus = false;
  options.workers = {"there:50052"};
  EXPECT_FALSE(options.keeps_off_gpus()) << "the workers are what it has";
}

// llama.cpp names each in its log, having asked it, which takes memory there.
TEST_F(ModelFileTest, TheVocabularyAloneAsksNoGpu) {
  std::string log;
  LoadHooks hooks;
  hooks.log = [&log](LogLevel, std::string_view line) { log.append(line).append("\n"); };
  ASSERT_TRUE(ModelFile::load_vocabulary(write_tiny("tiny.gguf"), hooks).ok());
  EXPECT_NE(log, "");
  EXPECT_EQ(log.find("using device"), std::string::npos) << log;
}

TEST_F(ModelFileTest, TheVocabularyAloneIsThatOfTheWholeFile) {
  const std::string path = write_tiny("tiny.gguf");
  Result<std::shared_ptr<ModelFile>> whole = ModelFile::load(path, 0, true, LoadHooks{});
  Result<std::shared_ptr<ModelFile>> few = ModelFile::load_vocabulary(path, LoadHooks{});
  ASSERT_TRUE(whole.ok() && few.ok()) << few.status().message();
  const LlamaVocabulary& a = (*whole)->vocabulary();
  const LlamaVocabulary& b = (*few)->vocabulary();
  ASSERT_EQ(a.size(), b.size());
  for (Token token = 0; token < a.size(); ++token) {
    EXPECT_EQ(a.piece(token), b.piece(token));
    EXPECT_EQ(a.is_end_of_generation(token), b.is_end_of_generation(token));
  }
  EXPECT_EQ(*a.tokenize("the cat sat", true, true), *b.tokenize("the cat sat", true, true));
  const std::vector<ChatMessage> chat{{.role = "user", .content = "hello"}};
  EXPECT_EQ(*a.chat_text(chat), *b.chat_text(chat));
  EXPECT_EQ((*few)->facts().path, path);
  EXPECT_EQ((*few)->facts().name, (*whole)->facts().name);
  EXPECT_EQ((*few)->facts().n_vocab, (*whole)->facts().n_vocab);
  EXPECT_TRUE((*few)->facts().has_chat_template);
  const std::string cut = write_bytes("cut.gguf", bytes_of(path).substr(0, 5000));
  EXPECT_FALSE(ModelFile::load_vocabulary(cut, LoadHooks{}).ok());
}

}  // namespace
}  // namespace outrider::llama
