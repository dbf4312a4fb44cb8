#include "testing/gguf_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "testing/gguf_damage.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_runner.h"

namespace outrider::testing {
namespace {

class GgufFileTest : public ::testing::Test {
 protected:
  GgufFileTest() {
    silence_llama_log();
    EXPECT_TRUE(write_tiny_gguf(good_, TinyModelOptions()).ok());
  }
  TempDir dir_;
  const std::string good_ = dir_.file("good.gguf");
};

TEST_F(GgufFileTest, MetadataAndTensorsComeBackAsTheyWereWritten) {
  const GgufReader reader = GgufReader::open(good_).value();
  EXPECT_EQ(reader.string("general.architecture").value(), "llama");
  EXPECT_EQ(reader.u32("llama.embedding_length").value(), 128U);
  EXPECT_FLOAT_EQ(reader.f32("llama.rope.freq_base").value(), 10000.0F);
  EXPECT_FALSE(reader.u32("no.such.key").ok());
  EXPECT_FALSE(reader.u32("general.architecture").ok());  // another type, and no abort
  EXPECT_FALSE(reader.f32("llama.embedding_length").ok());
  EXPECT_FALSE(reader.string("tokenizer.ggml.tokens").ok());
  const TensorInfo& first = reader.tensors().front();
  EXPECT_EQ(first.name, "token_embd.weight");
  EXPECT_EQ(first.type, GGML_TYPE_Q8_0);
  EXPECT_EQ(first.row_length(), 128);
}

TEST_F(GgufFileTest, ACopyOfEverythingIsTheSameFile) {
  const GgufReader reader = GgufReader::open(good_).value();
  const TensorSource source = [&](std::size_t index, std::vector<std::uint8_t>& data) {
    return reader.read_tensor(index, data);
  };
  const Status status = write_gguf(dir_.file("copy.gguf"), reader.metadata(), reader.tensors(),
                                   source, /*durable=*/true);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(read_bytes(dir_.file("copy.gguf")), read_bytes(good_));
}

TEST_F(GgufFileTest, AFailingSourceLeavesTheOldFileAndNothingElse) {
  write_bytes(dir_.file("out.gguf"), "old");
  const GgufReader reader = GgufReader::open(good_).value();
  const TensorSource failing = [&](std::size_t index, std::vector<std::uint8_t>& data) {
    return index < 3 ? reader.read_tensor(index, data) : internal_error("on command");
  };
  const Status status = write_gguf(dir_.file("out.gguf"), reader.metadata(), reader.tensors(),
                                   failing, /*durable=*/false);
  EXPECT_EQ(status.message(), "on command");
  const TensorSource too_short = [&](std::size_t index, std::vector<std::uint8_t>& data) {
    Status read = reader.read_tensor(index, data);
    data.pop_back();
    return read;
  };
  EXPECT_FALSE(write_gguf(dir_.file("out.gguf"), reader.metadata(), reader.tensors(), too_short,
                          /*durable=*/false)
                   .ok());
  EXPECT_EQ(read_bytes(dir_.file("out.gguf")), "old");
  EXPECT_EQ(dir_.n_entries(), 2);
}

TEST_F(GgufFileTest, AnAtomicFileAppearsOnlyOnCommit) {
  {
    AtomicFile file = AtomicFile::create(dir_.file("new")).value();
    ASSERT_TRUE(file.write("abc", 3).ok());
    ASSERT_TRUE(file.write_zeros(2).ok());
    EXPECT_EQ(file.written(), 5U);
    struct stat info;
    EXPECT_NE(stat(dir_.file("new").c_str(), &info), 0);
  }
  EXPECT_EQ(dir_.n_entries(), 1);  // good.gguf; the abandoned one is gone
  AtomicFile file = AtomicFile::create(dir_.file("new")).value();
  ASSERT_TRUE(file.write("abc", 3).ok());
  ASSERT_TRUE(file.commit(/*durable=*/true).ok());
  EXPECT_EQ(read_bytes(dir_.file("new")), "abc");
  EXPECT_FALSE(AtomicFile::create(dir_.path()).ok());  // a folder
}

TEST_F(GgufFileTest, EveryBadFileIsWhatItSaysToLlamaCppToo) {
  const std::string folder = dir_.file("bad");
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  const Result<std::vector<BadModelFile>> files = write_bad_model_files(good_, folder);
  ASSERT_TRUE(files.ok()) << files.status().message();
  std::set<std::string> paths;
  for (const BadModelFile& file : *files) {
    EXPECT_FALSE(TinyRunner::load(file.path).ok()) << file.what;
    paths.insert(file.path);
  }
  EXPECT_EQ(paths.size(), files->size());
}

TEST_F(GgufFileTest, TheReaderNamesWhatIsWrongWithAFile) {
  const auto message_of = [&](const std::string& content) {
    write_bytes(dir_.file("bad.gguf"), content);
    const Result<GgufReader> reader = GgufReader::open(dir_.file("bad.gguf"));
    EXPECT_FALSE(reader.ok());
    return reader.status().message();
  };
  EXPECT_NE(message_of("").find("empty"), std::string::npos);
  EXPECT_NE(message_of("ab\ncd").find("starts with \"ab\\x0ac\""), std::string::npos);
  EXPECT_NE(message_of("GGUF").find("header"), std::string::npos);
  const std::string good = read_bytes(good_);
  EXPECT_NE(message_of(good.substr(0, good.size() / 2)).find("cut short"), std::string::npos);
  EXPECT_EQ(GgufReader::open(dir_.file("nowhere")).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(GgufReader::open(dir_.path()).ok());
}

// A header is what an attacker or a broken download changes first; no byte of it may crash us.
TEST_F(GgufFileTest, NoSingleWrongByteInTheHeadCrashesTheReader) {
  const std::string good = read_bytes(good_);
  int refused = 0;
  for (std::size_t offset = 0; offset < 400; ++offset) {
    for (const int value : {0x00, 0x7f, 0xff}) {
      ASSERT_TRUE(
          copy_with_byte(good_, dir_.file("bad.gguf"), offset, static_cast<std::uint8_t>(value))
              .ok());
      if (!GgufReader::open(dir_.file("bad.gguf")).ok()) ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_FALSE(copy_with_byte(good_, dir_.file("bad.gguf"), good.size(), 0).ok());
}

TEST_F(GgufFileTest, DamageHelpersRefuseWhatIsNotThere) {
  EXPECT_FALSE(copy_without_key(good_, dir_.file("x"), "no.such.key").ok());
  EXPECT_FALSE(copy_without_tensor(good_, dir_.file("x"), "no_such_tensor").ok());
  EXPECT_FALSE(copy_truncated(dir_.file("missing"), dir_.file("x"), 1).ok());
}

TEST_F(GgufFileTest, AModelInSeveralFilesIsToLlamaCppTheWhole) {
  const std::vector<Token> text = {kTinyBos, 90, 91, 92, 80};
  const std::vector<std::vector<float>> wanted = TinyRunner::load(good_)->logits(text).value();
  const std::size_t n = GgufReader::open(good_)->tensors().size();
  for (const std::vector<std::size_t>& cuts :
       {std::vector<std::size_t>{3}, std::vector<std::size_t>{0, 3, n - 1}}) {
    const Result<std::string> first = write_gguf_split(good_, dir_.file("split"), cuts);
    ASSERT_TRUE(first.ok()) << first.status().message();
    Result<TinyRunner> runner = TinyRunner::load(*first);
    ASSERT_TRUE(runner.ok()) << runner.status().message();
    EXPECT_EQ(runner->logits(text).value(), wanted);
  }
  EXPECT_FALSE(write_gguf_split(good_, dir_.file("split"), {4, 3}).ok());
  EXPECT_FALSE(write_gguf_split(good_, dir_.file("split"), {n + 1}).ok());
}

TEST_F(GgufFileTest, SameFileSeesThroughLinksAndSpellings) {
  ASSERT_EQ(symlink(good_.c_str(), dir_.file("link").c_str()), 0);
  EXPECT_TRUE(same_file(good_, dir_.file("link")));
  EXPECT_TRUE(same_file(good_, dir_.path() + "/./good.gguf"));
  EXPECT_FALSE(same_file(good_, dir_.file("missing")));
  EXPECT_FALSE(same_file(dir_.file("missing"), dir_.file("missing")));
}

}  // namespace
}  // namespace outrider::testing
