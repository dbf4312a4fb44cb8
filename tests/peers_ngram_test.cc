// Our n-gram files and `replay` against llama.cpp's own programs, from the same source. `./dev
// peers` builds them and runs these tests; where they are not built the tests are skipped by name.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

class PeersNgram : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"llama-lookup-create", "llama-lookup-merge", "llama-lookup-stats"}) {
      if (std::filesystem::exists(peer(name))) continue;
      GTEST_SKIP() << name << " is not built; './dev peers' builds it";
    }
  }

  static std::string peer(const std::string& name) {
    return std::string(OUTRIDER_PEERS_DIR) + "/" + name;
  }

  // What it prints; the test fails when it does.
  static std::string run_peer(const std::string& name, const std::vector<std::string>& arguments) {
    std::string command = "OMP_WAIT_POLICY=passive '" + peer(name) + "'";
    for (const std::string& argument : arguments) command += " '" + argument + "'";
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    std::string text;
    char block[4096];
    for (std::size_t n; (n = fread(block, 1, sizeof(block), pipe)) > 0;) text.append(block, n);
    const int status = pclose(pipe);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << command << "\n"
        << text.substr(text.size() - std::min<std::size_t>(text.size(), 500));
    return text;
  }

  // The number behind "name = " in what lookup-stats prints.
  static double number(const std::string& text, const std::string& name) {
    const std::size_t at = text.find(name + " ");
    const std::size_t equals = text.find('=', at == std::string::npos ? text.size() : at);
    EXPECT_NE(equals, std::string::npos) << name;
    return equals == std::string::npos ? -1.0 : std::atof(text.c_str() + equals + 1);
  }

  CliResult ours(std::vector<std::string> arguments) const {
    return run_cli(folder_.call(std::move(arguments)));
  }
  const std::string& vocab() const { return cli_models().target; }

  // English-like words in changing order, so that some n-grams are sure and others are not.
  std::string write_text(const std::string& name, unsigned seed, int sentences) const {
    const std::vector<std::string> words = {"the",  "lighthouse", "keeper", "sea",
                                            "lamp", "stairs",     "calm",   "Once",
                                            "upon", "time",       "and",    "lit"};
    std::string text;
    unsigned state = seed;
    for (int i = 0; i < sentences * 9; ++i) {
      state = state * 1664525U + 1013904223U;
      const std::size_t a = (state >> 16) % words.size();
      const std::size_t b = (state >> 8) % words.size();
      text += words[std::min(a, b)] + (i % 9 == 8 ? ".\n" : " ");
    }
    return folder_.write(name, text);
  }

  CliFolder folder_;
};

TEST_F(PeersNgram, CreateAndMergeGiveTheSameCachesBothWays) {
  const std::string a = write_text("a.txt", 1, 60);
  const std::string b = write_text("b.txt", 2, 40);
  for (const std::string& name : {std::string("a"), std::string("b")}) {
    const std::string text = folder_.path(name + ".txt");
    run_peer("llama-lookup-create",
             {"-m", vocab(), "-f", text, "-lcs", folder_.path(name + ".theirs"), "-c", "256"});
    ASSERT_EQ(
        ours({"ngram", "create", "--vocab", vocab(), text, "-o", folder_.path(name)}).exit_code, 0);
    ASSERT_EQ(
        ours({"ngram", "export", folder_.path(name), "-o", folder_.path(name + ".ours")}).exit_code,
        0);
    const CliResult imported =
        ours({"ngram", "import", "--vocab", vocab(), folder_.path(name + ".theirs"), "-o",
              folder_.path(name + ".imported")});
    ASSERT_EQ(imported.exit_code, 0) << imported.err;
  }
  // Their merge reads what we exported, ours what we imported from them: the same in the end.
  run_peer("llama-lookup-merge",
           {folder_.path("a.ours"), folder_.path("b.ours"), folder_.path("merged.theirs")});
  ASSERT_EQ(ours({"ngram", "import", "--vocab", vocab(), folder_.path("merged.theirs"), "-o",
                  folder_.path("merged.imported")})
                .exit_code,
            0);
  ASSERT_EQ(ours({"ngram", "merge", folder_.path("a.imported"), folder_.path("b.imported"), "-o",
                  folder_.path("merged")})
                .exit_code,
            0);
  const auto stats = [&](const std::string& x, const std::string& y) {
    const Json files =
        ours({"ngram", "stats", folder_.path(x), folder_.path(y), "--json"}).object();
    for (const char* field : {"ngrams", "by_order", "followers", "counts", "tokenizer"}) {
      EXPECT_EQ(files["files"][0][field], files["files"][1][field])
          << x << " " << y << " " << field;
    }
    EXPECT_GT(files["files"][0]["counts"], 300);
  };
  stats("a", "a.imported");
  stats("b", "b.imported");
  stats("merged", "merged.imported");
}

TEST_F(PeersNgram, ReplayAgreesWithLookupStats) {
  const std::string text = write_text("t.txt", 3, 400);
  const std::string corpus = write_text("corpus.txt", 4, 300);
  ASSERT_EQ(
      ours({"ngram", "create", "--vocab", vocab(), corpus, "-o", folder_.path("s")}).exit_code, 0);
  ASSERT_EQ(ours({"ngram", "export", folder_.path("s"), "-o", folder_.path("s.theirs")}).exit_code,
            0);
  for (const bool with_static : {false, true}) {
    std::vector<std::string> theirs = {"-m", vocab(), "-f", text, "-c", "256", "--spec-draft-n-max",
                                       "7"};
    std::vector<std::string> arguments = {"replay",      "--vocab", vocab(), "--drafter",
                                          "ngram-cache", text,      "-c",    "256",
                                          "--width",     "8",       "--json"};
    if (with_static) {
      theirs.insert(theirs.end(), {"-lcs", folder_.path("s.theirs")});
      arguments.insert(arguments.end(), {"--ngram-static", folder_.path("s")});
    }
    const std::string printed = run_peer("llama-lookup-stats", theirs);
    const CliResult result = ours(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json o = result.object();
    const double drafted = o["drafted"].get<double>();
    const double accepted = o["accepted"].get<double>();
    std::printf("static %d: drafted %.0f, theirs %.0f; accepted %.0f, theirs %.0f\n", with_static,
                drafted, number(printed, "n_drafted"), accepted, number(printed, "n_accept"));
    // Thresholds are the same; what differs is who wins a tie.
    EXPECT_NEAR(drafted / number(printed, "n_drafted"), 1.0, 0.1);
    EXPECT_NEAR(accepted / number(printed, "n_accept"), 1.0, 0.1);
  }
}

}  // namespace
}  // namespace outrider::testing
