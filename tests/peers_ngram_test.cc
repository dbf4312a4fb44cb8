// Our n-gram files and `replay` against llama.cpp's own programs, from the same source. `./dev
// peers` builds them and runs these tests; where they are not built the tests are skipped by name.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "draft/ngram/ngram_file.h"
#include "tests/build_paths.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

class PeersNgram : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"llama-lookup-create", "llama-lookup-merge", "llama-lookup-stats"}) {
      if (std::filesystem::exists(peer_path(name))) continue;
      GTEST_SKIP() << name << " is not built; './dev peers' builds it";
    }
  }

  // What it prints, with a line that holds `last`; the test fails when it fails.
  //
  // llama.cpp's programs write through a thread of their logger, which their exit does not wait
  // for: under load the last lines get lost, in a file as in a pipe (seen once with
  // llama-lookup-stats). What they print can't be made to arrive, so a run that lacks `last` is
  // repeated once, and said to be.
  std::string run_peer(const std::string& name, const std::vector<std::string>& arguments,
                       const std::string& last = "") const {
    std::string text = run_once(name, arguments);
    if (!has_line(text, last)) {
      std::printf("%s ended without its line '%s': repeated once\n", name.c_str(), last.c_str());
      text = run_once(name, arguments);
      EXPECT_TRUE(has_line(text, last)) << name << " lost '" << last << "' twice:\n" << end(text);
    }
    return text;
  }

  // A whole line that holds `part`.
  static bool has_line(const std::string& text, const std::string& part) {
    const std::size_t at = text.find(part);
    return part.empty() || (at != std::string::npos && text.find('\n', at) != std::string::npos);
  }

  static std::string end(const std::string& text) {
    return text.substr(text.size() - std::min<std::size_t>(text.size(), 500));
  }

  std::string run_once(const std::string& name, const std::vector<std::string>& arguments) const {
    const std::string printed = folder_.path("printed.txt");
    std::string command = "OMP_WAIT_POLICY=passive '" + peer_path(name) + "'";
    for (const std::string& argument : arguments) command += " '" + argument + "'";
    const int status = std::system((command + " >'" + printed + "' 2>&1").c_str());
    std::string text = read_file(printed);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command << "\n" << end(text);
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
    const std::vector<std::string> words = {"the",  "lighthouse", "keeper",  "sea",
                                            "lamp", "stairs",     "calm",    "Once",
                                            "upon", "time",       "C:\\new", "lit"};
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
    run_peer("llama-lookup-create", {"-m", vocab(), "-f", text, "-lcs",
                                     folder_.path(name + ".theirs"), "--no-escape", "-c", "256"});
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
  const auto expect_same = [&](const std::string& x, const std::string& y) {
    const Result<NgramFile> ours = load_ngrams(folder_.path(x));
    const Result<NgramFile> theirs = load_ngrams(folder_.path(y));
    ASSERT_TRUE(ours.ok() && theirs.ok());
    EXPECT_EQ(ours->tokenizer, theirs->tokenizer);
    ASSERT_EQ(ours->cache.size(), theirs->cache.size()) << x << " " << y;
    EXPECT_GT(ours->cache.size(), 50U);
    for (std::size_t i = 0; i < ours->cache.size(); ++i) {
      NgramPart part;
      ASSERT_TRUE(theirs->cache.find(ours->cache.ngram(i), part)) << x << " " << y << " " << i;
      ASSERT_TRUE(std::ranges::equal(part.followers, ours->cache.part(i).followers))
          << x << " " << y << " " << i;
    }
  };
  expect_same("a", "a.imported");
  expect_same("b", "b.imported");
  expect_same("merged", "merged.imported");
}

TEST_F(PeersNgram, ReplayAgreesWithLookupStats) {
  const std::string text = write_text("t.txt", 3, 400);
  const std::string corpus = write_text("corpus.txt", 4, 300);
  const std::string earlier = write_text("earlier.txt", 5, 200);
  for (const auto& [from, name, dynamic] :
       {std::tuple(corpus, "s", false), std::tuple(earlier, "d", true)}) {
    std::vector<std::string> create = {"ngram", "create", "--vocab",         vocab(),
                                       from,    "-o",     folder_.path(name)};
    if (dynamic) create.push_back("--dynamic");
    ASSERT_EQ(ours(create).exit_code, 0);
    ASSERT_EQ(ours({"ngram", "export", folder_.path(name), "-o",
                    folder_.path(std::string(name) + ".theirs")})
                  .exit_code,
              0);
  }
  double before = 0.0;
  for (const std::string& files : {std::string(), std::string("s"), std::string("sd")}) {
    std::vector<std::string> theirs = {
        "-m", vocab(), "-f", text, "--no-escape", "-c", "256", "--spec-draft-n-max", "7"};
    std::vector<std::string> arguments = {"replay",      "--vocab", vocab(), "--drafter",
                                          "ngram-cache", text,      "-c",    "256",
                                          "--width",     "8",       "--json"};
    for (const char file : files) {
      const std::string path = folder_.path(std::string(1, file));
      theirs.insert(theirs.end(), {file == 's' ? "-lcs" : "-lcd", path + ".theirs"});
      arguments.insert(arguments.end(), {file == 's' ? "--ngram-static" : "--ngram-dynamic", path});
    }
    const std::string printed = run_peer("llama-lookup-stats", theirs, "n_accept ");
    const CliResult result = ours(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json o = result.object();
    const double drafted = o["drafted"].get<double>();
    const double accepted = o["accepted"].get<double>();
    std::printf("files '%s': drafted %.0f, theirs %.0f; accepted %.0f, theirs %.0f\n",
                files.c_str(), drafted, number(printed, "n_drafted"), accepted,
                number(printed, "n_accept"));
    // Thresholds are the same; what differs is who wins a tie.
    EXPECT_NEAR(drafted / number(printed, "n_drafted"), 1.0, 0.02);
    EXPECT_NEAR(accepted / number(printed, "n_accept"), 1.0, 0.02);
    EXPECT_NE(accepted, before) << "the files change the guesses";
    before = accepted;
  }
}

}  // namespace
}  // namespace outrider::testing
