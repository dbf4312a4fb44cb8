#include "http/metrics/access_log.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

class Lines : public LineSink {
 public:
  void write(std::string_view line) override { all.emplace_back(line); }
  Json last() const { return all.empty() ? Json() : *json::parse(all.back()).value; }
  std::vector<std::string> all;
};

class AccessLogTest : public ServerTest {
 protected:
  void start_logged(ServerOptions options = {},
                    const RuntimeOptions& runtime = {.slots = 2, .max_queue = 4}) {
    start(std::move(options), {.chat = true}, runtime);
    server_->log_to(&lines_);
  }
  Lines lines_;
};

TEST_F(AccessLogTest, ACompletionSaysWhatItCameTo) {
  start_logged();
  const HttpReply reply = post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 9}});
  ASSERT_EQ(lines_.all.size(), 1U);
  const Json line = lines_.last();
  EXPECT_EQ(line["method"], "POST");
  EXPECT_EQ(line["path"], "/v1/completions");
  EXPECT_EQ(line["status"], 200);
  EXPECT_EQ(line["bytes"], reply.body.size());
  EXPECT_EQ(line["model"], "fake");
  EXPECT_EQ(line["prompt_tokens"], 3);
  EXPECT_EQ(line["completion_tokens"], 9);
  EXPECT_EQ(line["finish"], "length");
  EXPECT_GE(line["ms"].get<double>(), line["first_token_ms"].get<double>());
  EXPECT_EQ(line["time"].get<std::string>().size(), 24U) << line["time"];
}

TEST_F(AccessLogTest, TheFirstTokensTimeHoldsTheWaitForAModelThatIsOpened) {
  start_logged();
  double waited_ms = 0.0;
  catalog_->on_acquire = [&waited_ms] {
    const Stopwatch watch;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    waited_ms = watch.elapsed_ms();
  };
  (void)post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 9}, {"n", 2}});
  const Json line = lines_.last();
  EXPECT_GE(line["model_ms"].get<double>(), waited_ms - 0.001) << line;
  EXPECT_GE(line["first_token_ms"].get<double>(), line["model_ms"].get<double>()) << line;
  EXPECT_GE(line["ms"].get<double>(), line["first_token_ms"].get<double>()) << line;
}

TEST_F(AccessLogTest, AStreamIsLoggedWhenItHasBeenWritten) {
  start_logged();
  std::string all;
  {
    const HttpReply reply =
        post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 9}, {"stream", true}});
    all = streamed(reply);
    EXPECT_TRUE(lines_.all.empty());
  }
  EXPECT_EQ(lines_.last()["bytes"], all.size());
  EXPECT_EQ(lines_.last()["completion_tokens"], 9);
}

TEST_F(AccessLogTest, AStreamThatNobodyTookIsLoggedAsCancelled) {
  start_logged({}, {.slots = 1, .max_queue = 1});
  const HttpReply running = post("/v1/completions", endless());
  // Waits for the slot, so that it ends when it is cancelled and not with some step behind that.
  { const HttpReply unsent = post("/v1/completions", endless()); }
  ASSERT_EQ(lines_.all.size(), 1U);
  EXPECT_EQ(lines_.last()["bytes"], 0);
  EXPECT_EQ(lines_.last()["finish"], "cancelled");
}

TEST_F(AccessLogTest, NeitherKeysNorPromptsNorQueriesAreWritten) {
  start_logged({.api_keys = {"sekrit-key"}});
  for (const char* key : {"Bearer sekrit-key", "Bearer sekrit-kex"}) {
    (void)server_->answer({.method = "POST",
                           .path = "/v1/completions",
                           .body = R"({"prompt":"abcabc","user":"sekrit"})",
                           .headers = {{"Authorization", key}},
                           .query = {{"key", "sekrit"}}});
  }
  ASSERT_EQ(lines_.all.size(), 2U);
  for (const std::string& line : lines_.all) {
    EXPECT_EQ(line.find("sekrit"), std::string::npos) << line;
    EXPECT_EQ(line.find("abcabc"), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
  EXPECT_EQ(lines_.last()["status"], 401);
}

TEST_F(AccessLogTest, WhoAskedIsToldByTheNumberOfTheKey) {
  start_logged({.api_keys = {"first", "second"}});
  using Headers = std::vector<std::pair<std::string, std::string>>;
  const auto logged = [this](Headers headers) {
    (void)server_->answer({.method = "GET", .path = "/v1/models", .headers = std::move(headers)});
    return lines_.last();
  };
  EXPECT_EQ(logged({{"Authorization", "Bearer first"}})["key"], 1);
  EXPECT_EQ(logged({{"Authorization", "Bearer second"}})["key"], 2);
  EXPECT_EQ(logged({{"Authorization", "Bearer wrong"}, {"x-api-key", "second"}})["key"], 2);
  EXPECT_FALSE(logged({{"Authorization", "Bearer wrong"}}).contains("key"));
  EXPECT_FALSE(logged({}).contains("key"));
  (void)server_->answer_unread({.method = "POST", .headers = {{"x-api-key", "second"}}}, 413);
  EXPECT_EQ(lines_.last()["key"], 2) << "of a body that is too long as well";
}

TEST_F(AccessLogTest, WithoutKeysNoNumberIsTold) {
  start_logged();
  (void)server_->answer(
      {.method = "GET", .path = "/v1/models", .headers = {{"Authorization", "Bearer any"}}});
  EXPECT_EQ(lines_.last()["status"], 200);
  EXPECT_FALSE(lines_.last().contains("key"));
}

TEST_F(AccessLogTest, APathCannotEndItsLineNorFillTheDisk) {
  start_logged();
  (void)ask("GET", "/a\n{\"status\":200}" + std::string(100'000, 'x'));
  EXPECT_LT(lines_.all.back().size(), 1000U);
  EXPECT_EQ(lines_.last()["status"], 404);
}

TEST(LineFile, GoesOnInANewFileAfterTheOldOneWasMovedAway) {
  const std::string path = ::testing::TempDir() + "access_log_test.log";
  const auto lines = [](const std::string& file) {
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::remove(path.c_str());
  std::unique_ptr<LineFile> file = std::move(LineFile::open(path).value());
  file->write("one");
  ASSERT_EQ(std::rename(path.c_str(), (path + ".1").c_str()), 0);
  file->write("two");
  ASSERT_TRUE(file->reopen().ok());
  file->write("three");
  EXPECT_EQ(lines(path + ".1"), "one\ntwo\n");
  EXPECT_EQ(lines(path), "three\n");
  EXPECT_EQ(LineFile::open("/nowhere/log").status().field(), "access_log");
}

// Behind a pipe or a terminal somebody reads, who would get nothing more.
TEST(LineFile, WhatIsNoFileOfItsOwnIsNotMovedAwayHoweverMuchIsWritten) {
  const std::string path = ::testing::TempDir() + "access_log_kept_test";
  const std::string real = path + ".real";
  for (const std::string& name : {path, path + ".1", real}) std::remove(name.c_str());
  std::string all;
  for (int i = 0; i < 20; ++i) all += "line " + std::to_string(100 + i) + "\n";
  const auto write_all = [&all, &path] {
    std::unique_ptr<LineFile> file = std::move(LineFile::open(path, 100).value());
    for (std::size_t at = 0; at < all.size(); at += 9) {
      if (at == 90) {
        EXPECT_TRUE(file->reopen().ok());
      }
      file->write(all.substr(at, 8));
    }
  };
  struct stat about = {};
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_all();
  std::vector<char> got(all.size() + 1);
  const ssize_t n_got = ::read(reader, got.data(), got.size());
  EXPECT_EQ(std::string(got.data(), static_cast<std::size_t>(std::max<ssize_t>(n_got, 0))), all);
  EXPECT_TRUE(::lstat(path.c_str(), &about) == 0 && S_ISFIFO(about.st_mode));
  close(reader);
  std::remove(path.c_str());
  ASSERT_EQ(::symlink(real.c_str(), path.c_str()), 0);
  write_all();
  std::ifstream in(real);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), all);
  EXPECT_TRUE(::lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode));
  EXPECT_NE(::lstat((path + ".1").c_str(), &about), 0);
  std::remove(path.c_str());
  std::remove(real.c_str());
}

// SIGHUP comes on the thread that also hears SIGTERM.
TEST(LineFile, ReopeningDoesNotWaitForALineThatNobodyTakes) {
  const std::string path = ::testing::TempDir() + "access_log_pipe_test";
  std::remove(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  std::unique_ptr<LineFile> file = std::move(LineFile::open(path).value());
  const std::string line(std::size_t{1} << 20, 'a');  // a pipe holds 64 KiB
  std::thread writer([&] { file->write(line); });
  int in_pipe = 0;
  while (ioctl(reader, FIONREAD, &in_pipe) == 0 && in_pipe < 4096) std::this_thread::yield();
  ASSERT_EQ(std::rename(path.c_str(), (path + ".1").c_str()), 0);
  EXPECT_TRUE(file->reopen().ok());
  std::size_t n_read = 0;
  std::vector<char> part(1 << 16);
  while (n_read < line.size() + 1) {
    const ssize_t n = ::read(reader, part.data(), part.size());
    if (n > 0) n_read += static_cast<std::size_t>(n);
    if (n <= 0) std::this_thread::yield();
  }
  writer.join();
  file->write("next");
  std::ifstream in(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "next\n") << "in the new file";
  close(reader);
  std::remove(path.c_str());
  std::remove((path + ".1").c_str());
}

TEST(LineFile, APipeWhoseReaderHasGoneIsAnErrorWhenItIsReopened) {
  const std::string path = ::testing::TempDir() + "access_log_no_reader_test";
  std::remove(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  std::unique_ptr<LineFile> file = std::move(LineFile::open(path).value());
  close(reader);
  EXPECT_FALSE(file->reopen().ok());
  EXPECT_FALSE(LineFile::open(path).ok());
  std::remove(path.c_str());
}

TEST(LineFile, LinesThatAreLostAreToldOnceUntilOneIsWritten) {
  const std::string path = ::testing::TempDir() + "access_log_lost_test.log";
  std::remove(path.c_str());
  ASSERT_EQ(::symlink("/dev/full", path.c_str()), 0);
  std::vector<std::string> told;
  std::unique_ptr<LineFile> file = std::move(LineFile::open(path, 0, [&told](const Status& why) {
                                               told.push_back(why.message());
                                             }).value());
  file->write("one");
  file->write("two");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find(path), std::string::npos) << told[0];
  EXPECT_NE(told[0].find("No space left"), std::string::npos) << told[0];
  std::remove(path.c_str());
  ASSERT_TRUE(file->reopen().ok());
  file->write("three");
  EXPECT_EQ(told.size(), 1U);
  std::remove(path.c_str());
  ASSERT_EQ(::symlink("/dev/full", path.c_str()), 0);
  ASSERT_TRUE(file->reopen().ok());
  file->write("four");
  EXPECT_EQ(told.size(), 2U);
  std::remove(path.c_str());
}

TEST(LineFile, AFullFileMakesRoomForANewOneAndTheOneBeforeIsKept) {
  const std::string path = ::testing::TempDir() + "access_log_full_test.log";
  const auto size = [](const std::string& file) {
    return std::ifstream(file, std::ios::ate | std::ios::binary).tellg();
  };
  std::remove(path.c_str());
  std::unique_ptr<LineFile> file = std::move(LineFile::open(path, 100).value());
  for (int i = 0; i < 1000; ++i) {
    file->write("nine byte");
    ASSERT_LE(size(path), 100);
  }
  EXPECT_EQ(size(path + ".1"), 100);
  file = std::move(LineFile::open(path, 100).value());  // what is there counts
  for (int i = 0; i < 10; ++i) file->write("nine byte");
  EXPECT_LE(size(path), 100);
  file->write(std::string(500, 'x'));  // longer than the limit: by itself
  EXPECT_EQ(size(path), 501);
}

// Or the second one to reach the limit would put a few lines in the place of all that the first
// kept.
TEST(LineFile, TwoThatShareAFileMoveItOnce) {
  const std::string path = ::testing::TempDir() + "access_log_shared_test.log";
  const std::string before = path + ".1";
  const std::string rotated = path + ".rotated";
  for (const std::string& name : {path, before, rotated}) std::remove(name.c_str());
  const auto size = [](const std::string& file) {
    return std::ifstream(file, std::ios::ate | std::ios::binary).tellg();
  };
  std::unique_ptr<LineFile> one = std::move(LineFile::open(path, 100).value());
  std::unique_ptr<LineFile> other = std::move(LineFile::open(path, 100).value());
  for (int i = 0; i < 10; ++i) {
    one->write("nine byte");
    other->write("nine byte");
  }
  EXPECT_EQ(size(before), 100);
  EXPECT_EQ(size(path), 100);
  // logrotate has moved the file and made a new one, and its signal has not come yet.
  ASSERT_EQ(std::rename(path.c_str(), rotated.c_str()), 0);
  std::ofstream(path) << "new\n";
  one->write("nine byte");
  EXPECT_EQ(size(before), 100);
  EXPECT_EQ(size(rotated), 100);
  EXPECT_EQ(size(path), 14);
  for (const std::string& name : {path, before, rotated}) std::remove(name.c_str());
}

}  // namespace
}  // namespace outrider::http
