#include "http/page_files.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "http/page_reply.h"

namespace outrider::http {
namespace {

const PageFile* find(std::string_view path) {
  for (const PageFile& file : page_files()) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

std::optional<HttpReply> reply_to(const std::string& path) {
  HttpRequest request;
  request.method = "GET";
  request.path = "/" + path;
  return page_reply(request);
}

TEST(PageFiles, AreSortedAndNoneIsEmpty) {
  ASSERT_FALSE(page_files().empty());
  EXPECT_TRUE(std::is_sorted(page_files().begin(), page_files().end(),
                             [](const PageFile& a, const PageFile& b) { return a.path < b.path; }));
  for (const PageFile& file : page_files()) EXPECT_FALSE(file.bytes.empty()) << file.path;
}

TEST(PageFiles, EndWhereTheFileEnds) {
  for (const PageFile& file : page_files()) {
    EXPECT_EQ(file.bytes.back(), '\n') << file.path;
    EXPECT_EQ(file.bytes.find('\0'), std::string_view::npos) << file.path;
  }
}

TEST(PageFiles, HaveTheirContentTypes) {
  ASSERT_NE(find("index.html"), nullptr);
  EXPECT_EQ(find("index.html")->content_type, "text/html; charset=utf-8");
  EXPECT_EQ(find("index.html")->bytes.substr(0, 15), "<!doctype html>");
  EXPECT_EQ(find("app.js")->content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(find("theme.css")->content_type, "text/css; charset=utf-8");
  EXPECT_EQ(find("icon.svg")->content_type, "image/svg+xml");
}

// Bytes that mean something to CMake or to C++ arrive as they were written.
TEST(PageFiles, KeepBracketsSemicolonsBackslashesAndUtf8) {
  EXPECT_NE(find("markdown_blocks.js")->bytes.find(R"(/^( *)([-*+]|\d{1,9}[.)])( +|$)/;)"),
            std::string_view::npos);
  EXPECT_NE(find("format.js")->bytes.find("\xe2\x80\x93"), std::string_view::npos);
}

// Every file that one of them refers to is among them, so the page needs nothing from elsewhere.
TEST(PageFiles, ReferToEachOtherOnly) {
  const std::regex reference(R"re((?:src|href)="([^"#]+)"|from "\./([^"]+)")re");
  std::set<std::string> seen;
  for (const PageFile& file : page_files()) {
    const std::string text(file.bytes);
    for (std::sregex_iterator i(text.begin(), text.end(), reference), end; i != end; ++i) {
      const std::string path = (*i)[1].matched ? (*i)[1].str() : (*i)[2].str();
      EXPECT_TRUE(reply_to(path)) << file.path << " refers to " << path;
      seen.insert(path);
    }
  }
  for (const PageFile& file : page_files()) {
    EXPECT_TRUE(file.path == "index.html" || seen.contains(std::string(file.path)))
        << "nothing refers to " << file.path;
  }
}

// As the page's tests have it (tests/page/mock_server.py).
TEST(PageFiles, TheTableOfDraftersIsAScript) {
  const std::optional<HttpReply> reply = reply_to("drafters.js");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->content_type, "text/javascript; charset=utf-8");
  EXPECT_NE(reply->body.find(R"(export const kDrafterPlaces = [["draft-model",0],["suffix",1],)"
                             R"(["ngram-cache",2],["recycle",3],["mtp",4],["eagle3",0],)"
                             R"(["dflash",0]];)"),
            std::string::npos)
      << reply->body;
}

TEST(PageFiles, TheRangesOfNumbersAreAScript) {
  const std::optional<HttpReply> reply = reply_to("fields.js");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->content_type, "text/javascript; charset=utf-8");
  for (const char* range :
       {R"("temp":{"min":0.0})", R"("top_p":{"min":0.0,"max":1.0})",
        R"("max_tokens":{"min":-1.0,"max":2147483647.0})", R"("width":{"min":1.0,"max":64.0})"}) {
    EXPECT_NE(reply->body.find(range), std::string::npos) << range << " in " << reply->body;
  }
  EXPECT_EQ(reply->body.find("grammar\""), std::string::npos) << "that is a text";
}

}  // namespace
}  // namespace outrider::http
