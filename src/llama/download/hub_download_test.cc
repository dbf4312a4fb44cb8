// Downloads from a hub on loopback, with everything that can go wrong.
#include "llama/download/hub_download.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "llama/download/hub_fixture_test.h"
#include "testing/llama_hub.h"
#include "testing/tiny_dir.h"

namespace outrider::llama {
namespace {

namespace fs = std::filesystem;
using testing::HubFile;

TEST_F(HubDownload, AModelComesThroughARedirectOnceAndIsThenInTheCache) {
  hub_.put("u/once", "model-Q4_K_M.gguf", good());
  std::vector<std::string> said;
  const DownloadHooks hooks{.progress = [&](const std::string& what, double fraction) {
    said.push_back(what);
    EXPECT_GE(fraction, 0.0);
    EXPECT_LE(fraction, 1.0);
  }};
  const Result<DownloadedModel> first = get("u/once", hooks);
  expect_good(first);
  EXPECT_TRUE(first->path.ends_with("model-Q4_K_M.gguf")) << first->path;
  EXPECT_EQ(hub_.bytes_sent(), static_cast<std::int64_t>(bytes_.size()));
  expect_good(get("u/once:Q4_K_M"));
  EXPECT_EQ(hub_.bytes_sent(), static_cast<std::int64_t>(bytes_.size()));
}

TEST_F(HubDownload, TheQuantChoosesAndAnUnknownOneListsWhatThereIs) {
  HubFile other = good();
  other.bytes.back() ^= 1;
  other.sha256 = "";
  hub_.put("u/quants", "m-Q4_K_M.gguf", good());
  hub_.put("u/quants", "m-Q8_0.gguf", other);
  hub_.put("u/quants", "mmproj-m-Q8_0.gguf", other);
  const Result<DownloadedModel> q8 = get("u/quants:Q8_0");
  ASSERT_TRUE(q8.ok()) << q8.status().message();
  EXPECT_TRUE(q8->path.ends_with("/m-Q8_0.gguf"));
  expect_error(get("u/quants:Q2_K").status(), StatusCode::kNotFound,
               "has no GGUF file 'Q2_K'; it has m-Q4_K_M.gguf, m-Q8_0.gguf and mmproj");
  hub_.put("u/none", "README.md", good());
  expect_error(get("u/none").status(), StatusCode::kNotFound,
               "has no model in GGUF format; it has no GGUF files");
  hub_.put("u/preset", "preset.ini", good());
  expect_error(get("u/preset").status(), StatusCode::kUnsupported, "preset.ini");
}

TEST_F(HubDownload, ABrokenConnectionIsResumedWhereItBroke) {
  HubFile file = good();
  file.breaks_after = half();
  file.breaks = 1;
  hub_.put("u/broken", "m.gguf", file);
  expect_good(get("u/broken"));
  EXPECT_EQ(hub_.bytes_sent(), static_cast<std::int64_t>(bytes_.size()));
  ASSERT_EQ(hub_.ranges().size(), 1u);
  EXPECT_EQ(hub_.ranges()[0], "bytes=" + std::to_string(half()) + "-");
}

TEST_F(HubDownload, OneThatBreaksAgainAndAgainKeepsThePartForTheNextCall) {
  HubFile file = good();
  file.breaks_after = half();
  file.breaks = 100;
  hub_.put("u/again", "m.gguf", file);
  expect_error(get("u/again").status(), StatusCode::kInternal,
               "the same command goes on from there");
  ASSERT_EQ(cached("u--again", ".downloadInProgress").size(), 1u);
  hub_.put("u/again", "m.gguf", good());
  expect_good(get("u/again"));
  EXPECT_EQ(hub_.bytes_sent(), static_cast<std::int64_t>(bytes_.size()));
  EXPECT_EQ(cached("u--again", ".downloadInProgress").size(), 0u);
}

TEST_F(HubDownload, APartThatIsAsLongAsTheFileOrLongerIsMended) {
  if (sha256_.empty()) GTEST_SKIP() << "without OpenSSL the part's name is another";
  for (const std::size_t more : {0u, 7u}) {
    const std::string repo = "long" + std::to_string(more);
    hub_.put("u/" + repo, "m.gguf", good());
    const fs::path blobs = dir_->file("cache/models--u--" + repo + "/blobs");
    fs::create_directories(blobs);
    testing::write_bytes((blobs / (sha256_ + ".downloadInProgress")).string(),
                         bytes_ + std::string(more, 'x'));
    const std::int64_t before = hub_.bytes_sent();
    expect_good(get("u/" + repo));
    EXPECT_EQ(hub_.bytes_sent() - before, more == 0 ? 1 : static_cast<std::int64_t>(bytes_.size()));
  }
}

TEST_F(HubDownload, WhatIsDamagedOnTheWayIsRemovedAndComesAnew) {
  if (sha256_.empty()) GTEST_SKIP() << "hashes need OpenSSL";
  HubFile file = good();
  file.bytes[file.bytes.size() / 2] ^= 1;
  hub_.put("u/damaged", "m.gguf", file);
  expect_error(get("u/damaged").status(), StatusCode::kDataLoss, "SHA-256");
  EXPECT_EQ(cached("u--damaged", sha256_).size(), 0u);
  hub_.put("u/damaged", "m.gguf", good());
  expect_good(get("u/damaged"));
}

TEST_F(HubDownload, WhatIsNoModelIsRefusedThoughItsLengthIsRight) {
  hub_.put("u/text", "m.gguf", {.bytes = "this is a page for people, not a model"});
  expect_error(get("u/text").status(), StatusCode::kDataLoss, "is not a GGUF file");
  EXPECT_EQ(cached("u--text", std::string(40, 'd')).size(), 0u);
}

TEST_F(HubDownload, WhatIsTheHubsAndRefusedIsKeptAndNotFetchedAgain) {
  if (sha256_.empty()) GTEST_SKIP() << "hashes need OpenSSL";
  HubFile file = good();
  file.bytes[4] = 99;  // of the format's version
  const std::string path = dir_->file("newer.gguf");
  testing::write_bytes(path, file.bytes);
  file.sha256 = **sha256_of(path, [](std::uint64_t) { return true; });
  hub_.put("u/newer", "m.gguf", file);
  for (const std::int64_t bytes : {static_cast<std::int64_t>(file.bytes.size()), std::int64_t{0}}) {
    const std::int64_t before = hub_.bytes_sent();
    expect_error(get("u/newer").status(), StatusCode::kUnsupported,
                 "came as the hub has it, but cannot be used: cannot read");
    EXPECT_EQ(hub_.bytes_sent() - before, bytes);
  }
}

TEST_F(HubDownload, EachRefusalSaysWhatToDo) {
  const struct {
    int status;
    StatusCode code;
    const char* words;
  } cases[] = {{401, StatusCode::kNotFound, "set HF_TOKEN"},
               {403, StatusCode::kNotFound, "set HF_TOKEN"},
               {404, StatusCode::kNotFound, "there is no model 'u/refused'"},
               {429, StatusCode::kInternal, "too many requests"},
               {500, StatusCode::kInternal, "try again later"},
               {503, StatusCode::kInternal, "try again later"}};
  hub_.put("u/refused", "m.gguf", good());
  for (const auto& c : cases) {
    hub_.refuse("u/refused", c.status);
    expect_error(get("u/refused").status(), c.code, c.words);
  }
  expect_error(get("u/nowhere").status(), StatusCode::kNotFound, "check the name");
  HubFile gated = good();  // listed for everybody, read by some
  gated.status = 403;
  hub_.put("u/gated", "m.gguf", gated);
  expect_error(get("u/gated").status(), StatusCode::kNotFound, "set HF_TOKEN");
}

TEST_F(HubDownload, TheTokenIsSentAndAWrongOneIsTold) {
  const std::string token = "hf_" + std::string(34, 'a');
  hub_.want_token(token);
  hub_.put("u/private", "m.gguf", good());
  expect_error(get("u/private").status(), StatusCode::kNotFound, "set HF_TOKEN");
  setenv("HF_TOKEN", ("hf_" + std::string(34, 'b')).c_str(), 1);
  const Status wrong = get("u/private").status();
  expect_error(wrong, StatusCode::kNotFound, "the token in HF_TOKEN may not read");
  EXPECT_EQ(wrong.message().find("bbbb"), std::string::npos) << "a secret is not for messages";
  setenv("HF_TOKEN", token.c_str(), 1);
  expect_good(get("u/private"));
}

TEST_F(HubDownload, WithoutAHubItSaysSoAndACopyInTheCacheIsUsed) {
  hub_.put("u/offline", "m.gguf", good());
  expect_good(get("u/offline"));
  setenv("HF_ENDPOINT", "http://127.0.0.1:1", 1);
  expect_error(get("u/absent").status(), StatusCode::kInternal, "cannot reach 127.0.0.1");
  expect_error(get("u/absent").status(), StatusCode::kInternal, "give it with -m FILE");
  const Result<DownloadedModel> copy = get("u/offline");
  expect_good(copy);
  ASSERT_EQ(copy->notes.size(), 1u);
  EXPECT_NE(copy->notes[0].find("the copy in the cache is used"), std::string::npos);

  setenv("HF_ENDPOINT", hub_.endpoint().c_str(), 1);
  setenv("HF_HUB_OFFLINE", "1", 1);
  const int before = hub_.requests();
  expect_good(get("u/offline"));
  expect_error(get("u/absent").status(), StatusCode::kInternal, "HF_HUB_OFFLINE");
  EXPECT_EQ(hub_.requests(), before);
}

TEST_F(HubDownload, OfflineIsTakenInAllSpellingsThatTheHubsOwnToolsTake) {
  hub_.put("u/spelled", "m.gguf", good());
  for (const char* yes : {"TRUE", "True", "yes", "YES", "on", "ON", "1"}) {
    setenv("HF_HUB_OFFLINE", yes, 1);
    expect_error(get("u/spelled").status(), StatusCode::kInternal, "HF_HUB_OFFLINE is set");
  }
  EXPECT_EQ(hub_.requests(), 0);
  for (const char* no : {"", "0", "no", "false"}) {
    setenv("HF_HUB_OFFLINE", no, 1);
    expect_good(get("u/spelled"));
  }
}

// Locks are of open files, so two threads stand for two processes.
TEST_F(HubDownload, TwoThatWantOneModelBothGetItAndOneDownloadsIt) {
  Result<DownloadedModel> first = internal_error("not asked");
  std::thread one = begin_stalled("u/both", first);
  bool waited = false;
  const DownloadHooks hooks{.progress = [&](const std::string& what, double) {
    if (what != "waiting for another download of m.gguf") return;
    waited = true;
    hub_.let_go();
  }};
  const Result<DownloadedModel> second = get("u/both", hooks);
  hub_.let_go();
  one.join();
  expect_good(first);
  expect_good(second);
  EXPECT_TRUE(waited);
  EXPECT_EQ(hub_.bytes_sent(), static_cast<std::int64_t>(bytes_.size()));
}

TEST_F(HubDownload, WhoWaitsForAnothersDownloadCanBeInterrupted) {
  Result<DownloadedModel> first = internal_error("not asked");
  std::thread one = begin_stalled("u/waits", first);
  std::atomic<bool> cancel{false};
  const DownloadHooks hooks{.progress = [&](const std::string&, double) { cancel = true; },
                            .cancel = &cancel};
  expect_error(get("u/waits", hooks).status(), StatusCode::kCancelled, "goes on from there");
  hub_.let_go();
  one.join();
  expect_good(first);
}

TEST_F(HubDownload, AnEndpointThatIsNoUrlIsTold) {
  for (const char* endpoint : {"hub", "ftp://hub", "http://", "http://hub:port"}) {
    setenv("HF_ENDPOINT", endpoint, 1);
    expect_error(get("u/m").status(), StatusCode::kInvalidArgument, "HF_ENDPOINT is");
  }
}

TEST_F(HubDownload, AnInterruptionEndsItSoonAndKeepsThePart) {
  HubFile file = good();
  file.breaks_after = half();
  file.stalls = true;
  hub_.put("u/stalled", "m.gguf", file);
  std::atomic<bool> cancel{false};
  const DownloadHooks hooks{.progress =
                                [&](const std::string&, double fraction) {
                                  if (fraction > 0.0) cancel = true;
                                },
                            .cancel = &cancel};
  expect_error(get("u/stalled", hooks).status(), StatusCode::kCancelled, "goes on from there");
  ASSERT_EQ(cached("u--stalled", ".downloadInProgress").size(), 1u);
}

// llama-common itself would remove it.
TEST_F(HubDownload, AnInterruptionWhileDataComesKeepsThePartToo) {
  HubFile file = good();
  file.breaks_after = half();
  file.stalls = true;
  hub_.put("u/flowing", "m.gguf", file);
  std::atomic<bool> cancel{false};
  const DownloadHooks hooks{.progress =
                                [&](const std::string&, double fraction) {
                                  if (fraction == 0.0) return;
                                  if (cancel.exchange(true)) hub_.let_go();
                                },
                            .cancel = &cancel};
  expect_error(get("u/flowing", hooks).status(), StatusCode::kCancelled, "the part is kept");
  ASSERT_EQ(cached("u--flowing", ".downloadInProgress").size(), 1u);
  EXPECT_EQ(cached("u--flowing", ".kept").size(), 0u);
  hub_.put("u/flowing", "m.gguf", good());
  const std::int64_t before = hub_.bytes_sent();
  expect_good(get("u/flowing"));
  EXPECT_LE(hub_.bytes_sent() - before, half() + 1);
}

}  // namespace
}  // namespace outrider::llama
