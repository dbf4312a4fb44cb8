#include "http/exchange/file_names.h"

#include <gtest/gtest.h>

namespace outrider::http {
namespace {

TEST(FileNames, AnAbsolutePathInQuotesBecomesItsName) {
  EXPECT_EQ(without_folders("'/home/ann/m.gguf' does not exist"), "'m.gguf' does not exist");
  EXPECT_EQ(without_folders("model 'a': '/m.gguf' and '/x y/d.gguf'"),
            "model 'a': 'm.gguf' and 'd.gguf'");
}

TEST(FileNames, AFolderMayHaveAnApostrophe) {
  EXPECT_EQ(without_folders("'/home/o'brien/x/m.gguf' is damaged"), "'m.gguf' is damaged");
  EXPECT_EQ(without_folders("'/a's b/m.gguf' and '/c/d.gguf'"), "'m.gguf' and 'd.gguf'");
  EXPECT_EQ(without_folders("'/home/Anns' models/m.gguf' cannot be read: Input/output error"),
            "'m.gguf' cannot be read: Input/output error");
  EXPECT_EQ(without_folders("'/a/m.gguf' hasn't '/b', it's ('/o'c/d','/e/f'): 1/2 of 'x'"),
            "'m.gguf' hasn't 'b', it's ('d','f'): 1/2 of 'x'");
  EXPECT_EQ(without_folders("'/home/'old'/m.gguf's end is missing"), "'m.gguf's end is missing");
}

TEST(FileNames, WhatIsNoAbsolutePathStays) {
  for (const char* text : {"", "'", "'/", "no /path/in quotes", "'folder/m.gguf'", "it's /a/b'",
                           "'/home/ann/m.gguf without an end"}) {
    EXPECT_EQ(without_folders(text), text);
  }
}

}  // namespace
}  // namespace outrider::http
