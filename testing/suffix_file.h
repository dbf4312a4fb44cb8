// Suffix stores for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "draft/suffix/suffix_store.h"

namespace outrider::testing {

inline void write_suffix_store(const std::string& path, const TokenizerId& tokenizer,
                               const std::vector<std::vector<Token>>& texts) {
  SuffixStoreBuilder builder(tokenizer);
  for (const std::vector<Token>& text : texts) {
    const Status added = builder.add(text);
    ASSERT_TRUE(added.ok()) << added.message();
  }
  const Status written = builder.write(path);
  ASSERT_TRUE(written.ok()) << written.message();
}

}  // namespace outrider::testing
