// For the tests of this room: a hub on loopback, a cache, and a small model.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "llama/download/hub_download.h"
#include "llama/download/sha256.h"
#include "testing/llama_hub.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {

class HubDownload : public ::testing::Test {
 protected:
  // llama-common reads the cache's folder once in a process.
  static void SetUpTestSuite() {
    dir_ = new testing::TempDir();
    setenv("LLAMA_CACHE", dir_->file("cache").c_str(), 1);
    const std::string path = dir_->file("model.gguf");
    ASSERT_TRUE(testing::write_tiny_gguf(path, {}).ok());
    bytes_ = testing::read_bytes(path);
    sha256_ = sha256_of(path, [](std::uint64_t) { return true; })->value_or("");
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  HubDownload() {
    unsetenv("HF_TOKEN");
    unsetenv("HF_HUB_OFFLINE");
    unsetenv("MODEL_ENDPOINT");
    setenv("HF_ENDPOINT", hub_.endpoint().c_str(), 1);
  }

  static testing::HubFile good() { return {.bytes = bytes_, .sha256 = sha256_}; }
  static std::int64_t half() { return static_cast<std::int64_t>(bytes_.size() / 2); }

  static Result<DownloadedModel> get(const std::string& name, const DownloadHooks& hooks = {}) {
    const Result<HubName> parsed = parse_hub_name(name);
    EXPECT_TRUE(parsed.ok());
    return download_model(*parsed, hooks);
  }
  static void expect_good(const Result<DownloadedModel>& model) {
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(testing::read_bytes(model->path), bytes_);
  }
  static void expect_error(const Status& status, StatusCode code, const std::string& words) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }

  // Of a repository: files in its folder of the cache whose names end so.
  static std::vector<std::filesystem::path> cached(const std::string& folder,
                                                   const std::string& end) {
    std::vector<std::filesystem::path> found;
    const std::filesystem::path root = dir_->file("cache/models--" + folder);
    if (!std::filesystem::exists(root)) return found;
    for (const std::filesystem::directory_entry& entry :
         std::filesystem::recursive_directory_iterator(root)) {
      if (entry.path().string().ends_with(end)) found.push_back(entry.path());
    }
    return found;
  }

  // The first half of good(), as an earlier call leaves it. (With OpenSSL: without it the part's
  // name is another.)
  static std::string write_part(const std::string& folder) {
    const std::filesystem::path blobs = dir_->file("cache/models--" + folder + "/blobs");
    std::filesystem::create_directories(blobs);
    const std::string part = (blobs / (sha256_ + ".downloadInProgress")).string();
    testing::write_bytes(part, bytes_.substr(0, bytes_.size() / 2));
    return part;
  }

  // Downloads a model whose first half is there when this returns, and the rest after let_go().
  std::thread begin_stalled(const std::string& repo, Result<DownloadedModel>& result) {
    testing::HubFile file = good();
    file.breaks_after = half();
    file.stalls = true;
    hub_.put(repo, "m.gguf", file);
    const auto has_begun = std::make_shared<std::atomic<bool>>(false);
    std::thread thread([repo, &result, has_begun] {
      result = get(repo, {.progress = [has_begun](const std::string&, double fraction) {
                     if (fraction > 0.0) *has_begun = true;
                   }});
      *has_begun = true;  // in failing, too
    });
    while (!*has_begun) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return thread;
  }

  inline static testing::TempDir* dir_ = nullptr;
  inline static std::string bytes_;
  inline static std::string sha256_;
  testing::LlamaHub hub_;
};

}  // namespace outrider::llama
