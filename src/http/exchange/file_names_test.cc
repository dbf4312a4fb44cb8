#include "http/exchange/file_names.h"

#include <gtest/gtest.h>

namespace outrider::http {
namespace {

TEST(FileNames, AnAbsolutePathInQuotesBecomesItsName) {
  EXPECT_EQ(without_folders("'/home/ann/m.gguf' does not exist"), "'m.gguf' does not exist");
  EXPECT_EQ(without_folders("model 'a': '/m.gguf' and '/x y/d.gguf'"),
            "model 'a': 'm.gguf' and 'd.gguf'");
}

TEST(FileNames, WhatIsNoAbsolutePathStays) {
  for (const char* text : {"", "'", "'/", "no /path/in quotes", "'folder/m.gguf'", "it's /a/b'",
                           "'/home/ann/m.gguf without an end"}) {
    EXPECT_EQ(without_folders(text), text);
  }
}

}  // namespace
}  // namespace outrider::http
