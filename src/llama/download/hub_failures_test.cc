// Downloads that llama-common gives up, or tells as something else than they are.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llama/download/hub.h"
#include "llama/download/hub_cache.h"
#include "llama/download/hub_fixture_test.h"
#include "store/file_lock.h"
#include "testing/llama_hub.h"
#include "testing/tiny_dir.h"

namespace outrider::llama {
namespace {

namespace fs = std::filesystem;
using testing::HubFile;

// A thousandth of the file, of which llama-common tells, takes longer than the limit.
TEST_F(HubDownload, WhatComesSlowlyIsNotGivenUp) {
  HubFile file{.bytes = std::string(std::size_t{30} * 4096, 'x')};
  file.announces = std::int64_t{160} << 20;  // a thousandth of it is more than comes
  file.is_slow = true;
  hub_.put("u/slow", "m.gguf", file);
  expect_error(get("u/slow", {.give_up_after = std::chrono::seconds(2)}).status(),
               StatusCode::kDataLoss, "came with 122880 bytes instead of 167772160");
}

TEST_F(HubDownload, WhereNothingComesAnyMoreItIsGivenUpAndThePartKept) {
  HubFile file = good();
  file.breaks_after = half();
  file.stalls = true;
  hub_.put("u/silent", "m.gguf", file);
  expect_error(get("u/silent", {.give_up_after = std::chrono::seconds(1)}).status(),
               StatusCode::kInternal, "nothing has come from 127.0.0.1 for 1 seconds");
  EXPECT_EQ(cached("u--silent", ".downloadInProgress").size(), 1u);
}

TEST_F(HubDownload, APartWhoseRestIsNotGivenIsFetchedFromTheBeginning) {
  if (sha256_.empty()) GTEST_SKIP() << "without OpenSSL the part's name is another";
  HubFile file = good();
  file.ignores_ranges = true;
  hub_.put("u/norest", "m.gguf", file);
  write_part("u--norest");
  expect_good(get("u/norest"));
  EXPECT_EQ(cached("u--norest", ".downloadInProgress").size(), 0u);
}

TEST_F(HubDownload, ARefusalOfTheFileIsToldAndKeepsThePart) {
  if (sha256_.empty()) GTEST_SKIP() << "without OpenSSL the part's name is another";
  HubFile file = good();
  file.get_status = 429;
  hub_.put("u/busy", "m.gguf", file);
  const std::string part = write_part("u--busy");
  expect_error(get("u/busy").status(), StatusCode::kInternal, "too many requests");
  EXPECT_EQ(fs::file_size(part), bytes_.size() / 2);
}

TEST_F(HubDownload, ARefusalOfTheFileIsToldWithoutAPart) {
  HubFile file = good();
  file.get_status = 403;
  hub_.put("u/terms", "m.gguf", file);
  expect_error(get("u/terms").status(), StatusCode::kNotFound, "set HF_TOKEN");
}

TEST_F(HubDownload, APartThatCannotBeWrittenIsTold) {
  if (sha256_.empty()) GTEST_SKIP() << "without OpenSSL the part's name is another";
  hub_.put("u/folder", "m.gguf", good());
  const std::string part = write_part("u--folder");
  fs::remove(part);
  fs::create_symlink("no-such-folder/part", part);
  expect_error(get("u/folder").status(), StatusCode::kInternal, "cannot write '" + part);
}

TEST_F(HubDownload, AFileThatIsTooShortIsKeptAsThePartOfTheNextCall) {
  HubFile file{.bytes = bytes_.substr(0, bytes_.size() - 100)};
  file.announces = static_cast<std::int64_t>(bytes_.size());
  hub_.put("u/short", "m.gguf", file);
  expect_error(get("u/short").status(), StatusCode::kDataLoss, "instead of");
  EXPECT_EQ(cached("u--short", ".downloadInProgress").size(), 1u);
  hub_.put("u/short", "m.gguf", {.bytes = bytes_});
  expect_good(get("u/short"));
  EXPECT_EQ(hub_.bytes_sent(), static_cast<std::int64_t>(bytes_.size()));
}

TEST_F(HubDownload, AFileThatIsTooLongIsRemoved) {
  HubFile file{.bytes = bytes_};
  file.announces = static_cast<std::int64_t>(bytes_.size()) - 100;
  hub_.put("u/toolong", "m.gguf", file);
  expect_error(get("u/toolong").status(), StatusCode::kDataLoss, "it was removed");
  EXPECT_EQ(cached("u--toolong", std::string(40, 'd')).size(), 0u);
}

TEST_F(HubDownload, AnUpdateThatIsInterruptedLeavesTheCopyInTheCacheForUseOffline) {
  hub_.put("u/update", "m-Q8_0.gguf", good());
  expect_good(get("u/update"));
  HubFile newer{.bytes = bytes_, .sha256 = std::string(64, 'e')};
  newer.breaks_after = half();
  newer.stalls = true;
  hub_.put("u/update", "m-Q8_0.gguf", newer);
  hub_.commit("u/update", 'e');
  std::atomic<bool> cancel{false};
  const DownloadHooks hooks{.progress =
                                [&](const std::string&, double fraction) {
                                  if (fraction > 0.0) cancel = true;
                                },
                            .cancel = &cancel};
  expect_error(get("u/update", hooks).status(), StatusCode::kCancelled, "goes on from there");
  setenv("HF_HUB_OFFLINE", "1", 1);
  for (const char* name : {"u/update", "u/update:Q8_0", "u/update:q8_0"}) {
    const Result<DownloadedModel> copy = get(name);
    expect_good(copy);
    ASSERT_EQ(copy->notes.size(), 1u);
    EXPECT_NE(copy->notes[0].find("(commit " + std::string(40, 'c') + ")"), std::string::npos);
  }
  expect_error(get("u/update:Q4_K_M").status(), StatusCode::kInternal, "HF_HUB_OFFLINE is set");
}

TEST_F(HubDownload, OfAnEarlierCommitTheModelIsFoundThatTheQuantChooses) {
  const fs::path snapshots = dir_->file("cache/models--u--many/snapshots");
  const fs::path one = snapshots / std::string(40, 'a');
  fs::create_directories(one / "big");
  for (const char* file : {"a-mmproj-Q4_K_M.gguf", "README.md", "m-F16.gguf", "m-Q8_0.gguf",
                           "big/n-Q6_K-00001-of-00002.gguf", "big/n-Q6_K-00002-of-00002.gguf"}) {
    testing::write_bytes((one / file).string(), "x");
  }
  fs::create_symlink("nowhere", one / "m-Q4_K_M.gguf");
  const struct {
    const char* quant;
    const char* file;
  } cases[] = {
      {"", "m-Q8_0.gguf"}, {"F16", "m-F16.gguf"}, {"q6_k", "big/n-Q6_K-00001-of-00002.gguf"}};
  for (const auto& c : cases) {
    const std::optional<EarlierCopy> copy = find_earlier_copy({.repo = "u/many", .quant = c.quant});
    ASSERT_TRUE(copy) << c.quant;
    EXPECT_EQ(copy->path, (one / c.file).string());
    EXPECT_EQ(copy->commit, std::string(40, 'a'));
  }
  EXPECT_FALSE(find_earlier_copy({.repo = "u/many", .quant = "Q4_K_M"}));
  EXPECT_FALSE(find_earlier_copy({.repo = "u/nothing", .quant = ""}));
}

TEST_F(HubDownload, AFolderOfTheCacheThatCannotBeWrittenIsTold) {
  hub_.put("u/file", "m.gguf", good());
  fs::create_directories(dir_->file("cache"));
  testing::write_bytes(dir_->file("cache/models--u--file"), "no folder");
  const Status status = get("u/file").status();
  expect_error(status, StatusCode::kInternal, "cannot write '");
  expect_error(status, StatusCode::kInternal, "LLAMA_CACHE names another folder");
}

TEST_F(HubDownload, ATokenThatLlamaCommonDoesNotSendIsTold) {
  hub_.want_token("x");
  setenv("HF_TOKEN", "x", 1);
  hub_.put("u/form", "m.gguf", good());
  expect_error(get("u/form").status(), StatusCode::kNotFound, "not of the form hf_ with 34");
}

TEST_F(HubDownload, ARefusalOfTheListIsTold) {
  hub_.put("u/list", "m.gguf", good());
  hub_.refuse("u/list/tree", 429);
  expect_error(get("u/list").status(), StatusCode::kInternal, "too many requests");
  hub_.refuse("u/list/tree", 503);
  expect_error(get("u/list:Q8_0").status(), StatusCode::kInternal, "try again later");
  hub_.refuse("u/list/tree", 404);
  expect_error(get("u/list").status(), StatusCode::kNotFound, "does not list its files");
  hub_.refuse("u/list/tree", 0);
  expect_good(get("u/list"));
}

TEST_F(HubDownload, AProxyThatIsNotUsedIsNamedWhereTheHubCannotBeReached) {
  const std::vector<std::string> names = {"http_proxy",  "HTTP_PROXY", "https_proxy",
                                          "HTTPS_PROXY", "all_proxy",  "ALL_PROXY"};
  for (const std::string& name : names) unsetenv(name.c_str());
  setenv("HF_ENDPOINT", "http://127.0.0.1:1", 1);
  EXPECT_EQ(get("u/absent").status().message().find("uses no proxy"), std::string::npos);
  setenv("https_proxy", "http://proxy.test:3128", 1);
  EXPECT_EQ(get("u/absent").status().message().find("uses no proxy"), std::string::npos)
      << "it is for another kind of address";
  setenv("HTTP_PROXY", "http://name:secret@proxy.test:3128", 1);
  const Status named = get("u/absent").status();
  expect_error(named, StatusCode::kInternal, "; HTTP_PROXY is set, but -hf uses no proxy");
  EXPECT_EQ(named.message().find("secret"), std::string::npos);
  for (const std::string& name : names) unsetenv(name.c_str());
  const Hub hub{.endpoint = "https://hub.test/", .host = "hub.test", .token = ""};
  setenv("HTTPS_PROXY", "http://proxy.test:3128", 1);
  EXPECT_EQ(hub.proxy_hint().find("; HTTPS_PROXY is set"), 0U);
  unsetenv("HTTPS_PROXY");
  EXPECT_EQ(hub.proxy_hint(), "");
}

TEST_F(HubDownload, WhoListsTheFilesWaitsForAnotherWhoDoes) {
  hub_.put("u/locked", "m.gguf", good());
  fs::create_directories(repo_folder("u/locked"));
  std::optional<FileLock> other(std::in_place, repo_folder("u/locked") + "/refs.lock");
  bool has_waited = false;
  const DownloadHooks hooks{.progress = [&](const std::string& what, double) {
    if (has_waited || what != "waiting for another list of u/locked") return;
    has_waited = true;
    EXPECT_EQ(hub_.requests(), 1) << "whether the model is there";
    other.reset();
  }};
  expect_good(get("u/locked", hooks));
  EXPECT_TRUE(has_waited);
}

}  // namespace
}  // namespace outrider::llama
