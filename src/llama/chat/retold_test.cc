#include "llama/chat/retold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace outrider::llama {
namespace {

ChatMessage calls_with(const std::vector<std::string>& ids) {
  ChatMessage message{.role = "assistant", .content = ""};
  for (const std::string& id : ids) {
    message.tool_calls.push_back({.id = id, .name = "look", .arguments = "{}"});
  }
  return message;
}

ChatMessage result_of(const std::string& id) {
  return {.role = "tool", .content = "rain", .tool_call_id = id};
}

bool is_nine(const std::string& id) {
  return id.size() == 9 && std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

const ChatMessage kUser{.role = "user", .content = "Hi"};

TEST(Retold, ACallAndItsResultHaveTheSameNineCharacters) {
  const std::vector<ChatMessage> messages = {
      kUser, calls_with({"call_0123456789abcdef", "call_0123456789abcdeg", "123456-89"}),
      result_of("call_0123456789abcdeg"), result_of("123456-89"),
      result_of("call_0123456789abcdef")};
  const std::optional<std::vector<ChatMessage>> named = with_short_ids(messages);
  ASSERT_TRUE(named.has_value());
  ASSERT_EQ(named->size(), 5U);
  const std::vector<ToolCall>& calls = (*named)[1].tool_calls;
  std::set<std::string> ids;
  for (const ToolCall& call : calls) {
    EXPECT_TRUE(is_nine(call.id)) << call.id;
    ids.insert(call.id);
  }
  EXPECT_EQ(ids.size(), 3U);
  EXPECT_EQ((*named)[2].tool_call_id, calls[1].id);
  EXPECT_EQ((*named)[3].tool_call_id, calls[2].id);
  EXPECT_EQ((*named)[4].tool_call_id, calls[0].id);
  EXPECT_EQ((*named)[4].content, "rain");
}

TEST(Retold, AnIdOfNineLettersOrDigitsStays) {
  const std::vector<ChatMessage> own = {kUser, calls_with({"aB3456789"}), result_of("aB3456789")};
  EXPECT_FALSE(with_short_ids(own).has_value());
  EXPECT_FALSE(with_short_ids({kUser}).has_value());
  EXPECT_FALSE(with_short_ids({}).has_value());
  const std::optional<std::vector<ChatMessage>> named = with_short_ids(
      {kUser, calls_with({"aB3456789", "call_1"}), result_of("aB3456789"), result_of("call_1")});
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ((*named)[1].tool_calls[0].id, "aB3456789");
  EXPECT_EQ((*named)[2].tool_call_id, "aB3456789");
  EXPECT_EQ((*named)[3].tool_call_id, (*named)[1].tool_calls[1].id);
}

TEST(Retold, WhereThereIsNoIdThePlaceCounts) {
  const std::vector<ChatMessage> turn = {kUser, calls_with({"", ""}), result_of(""), result_of("")};
  std::vector<ChatMessage> longer = turn;
  longer.insert(longer.end(), {calls_with({""}), result_of("")});
  const std::optional<std::vector<ChatMessage>> before = with_short_ids(turn);
  const std::optional<std::vector<ChatMessage>> named = with_short_ids(longer);
  ASSERT_TRUE(before.has_value() && named.has_value());
  std::set<std::string> ids;
  for (const std::size_t i : {std::size_t{1}, std::size_t{4}}) {
    for (std::size_t k = 0; k < (*named)[i].tool_calls.size(); ++k) {
      const std::string& id = (*named)[i].tool_calls[k].id;
      EXPECT_TRUE(is_nine(id)) << id;
      EXPECT_EQ((*named)[i + 1 + k].tool_call_id, id);
      ids.insert(id);
    }
  }
  EXPECT_EQ(ids.size(), 3U);
  // Nor does what follows change what was said.
  for (std::size_t i = 0; i < turn.size(); ++i) {
    EXPECT_EQ((*before)[i].tool_call_id, (*named)[i].tool_call_id);
  }
}

TEST(Retold, OneOfBothWithoutAnIdIsTheOthers) {
  const std::optional<std::vector<ChatMessage>> no_result =
      with_short_ids({kUser, calls_with({"call_1"}), result_of("")});
  ASSERT_TRUE(no_result.has_value());
  EXPECT_EQ((*no_result)[1].tool_calls[0].id, (*no_result)[2].tool_call_id);
  const std::optional<std::vector<ChatMessage>> no_call =
      with_short_ids({kUser, calls_with({""}), result_of("call_1")});
  ASSERT_TRUE(no_call.has_value());
  EXPECT_EQ((*no_call)[1].tool_calls[0].id, (*no_call)[2].tool_call_id);
  const std::optional<std::vector<ChatMessage>> of_none =
      with_short_ids({kUser, result_of(""), result_of("call_1")});
  ASSERT_TRUE(of_none.has_value());
  EXPECT_TRUE(is_nine((*of_none)[1].tool_call_id));
  EXPECT_TRUE(is_nine((*of_none)[2].tool_call_id));
}

TEST(Retold, WhatChangesLeastIsTriedFirst) {
  const ChatMessage late{.role = "system", .content = "It is late."};
  EXPECT_TRUE(retold({kUser}).empty());
  EXPECT_EQ(retold({kUser, late, kUser}).size(), 1U);
  EXPECT_EQ(retold({kUser, calls_with({"call_1"}), result_of("call_1")}).size(), 1U);
  const std::vector<std::vector<ChatMessage>> ways =
      retold({kUser, calls_with({"call_1"}), result_of("call_1"), late, kUser});
  ASSERT_EQ(ways.size(), 3U);
  EXPECT_EQ(ways[0].size(), 5U);
  EXPECT_NE(ways[0][1].tool_calls[0].id, "call_1");
  EXPECT_EQ(ways[1].size(), 4U);
  EXPECT_EQ(ways[1][1].tool_calls[0].id, "call_1");
  EXPECT_EQ(ways[2].size(), 4U);
  EXPECT_EQ(ways[2][1].tool_calls[0].id, ways[0][1].tool_calls[0].id);
}

}  // namespace
}  // namespace outrider::llama
