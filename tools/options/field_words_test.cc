#include "tools/options/field_words.h"

#include <gtest/gtest.h>

#include <string>

#include "base/field.h"
#include "model/model_options.h"
#include "serve/runtime_options.h"
#include "tools/options/options.h"

namespace outrider::tools {
namespace {

constexpr ModelRole kDraft = ModelRole::kDraft;

TEST(FieldWords, SettingsThatAMessageAdvisesAreOptions) {
  EXPECT_EQ(in_options("switch it on (flash_attn=on) or take f16 (cache_type_v=f16)"),
            "switch it on (--flash-attn on) or take f16 (--cache-type-v f16)");
  EXPECT_EQ(in_options("exact=auto runs it"), "--exact auto runs it");
  EXPECT_EQ(in_options("not kept (reuse_prefix=false)"), "not kept (--reuse-prefix=false)")
      << "a switch takes no word of its own";
  EXPECT_EQ(in_options("take a smaller one (ctx)"), "take a smaller one (--ctx)");
  EXPECT_EQ(in_options("prompt_cache has no effect, remember_tokens is 0, so"),
            "--prompt-cache has no effect, --remember-tokens is 0, so");
  EXPECT_EQ(in_options("1 with rule=block, which judges chains"),
            "1 with --rule block, which judges chains");
  EXPECT_EQ(in_options("the target's layers are switched off (mtp=off)"),
            "the target's layers are switched off (--mtp off)")
      << "an apostrophe opens no quotes";
}

TEST(FieldWords, OfADraftTheyAreItsOwn) {
  EXPECT_EQ(in_options("take a smaller one (ctx)", kDraft), "take a smaller one (--draft-ctx)");
  EXPECT_EQ(in_options("(flash_attn=on), (cache_type_v=f16), gpu_layers=0", kDraft),
            "(--flash-attn on), (--draft-cache-type-v f16), --draft-gpu-layers 0");
  EXPECT_EQ(option_of("path"), "--model");
  EXPECT_EQ(option_of("path", kDraft), "--draft-model");
  EXPECT_EQ(option_of("threads", kDraft), "--draft-threads");
  EXPECT_EQ(option_of("stop[2]"), "--stop");
  EXPECT_EQ(option_of("--suffix-store"), "--suffix-store");
}

TEST(FieldWords, NamesOfFilesAndOtherWordsStay) {
  for (const char* text :
       {"", "'", "'/x/cache_type_k=q8_0/prompt_cache.gguf' is damaged",
        "there is no file 'exact=on'", "/x/prompt_cache.gguf, exact and path",
        "--cache-type-k is 'q9', but must be f32", "{\"max_tokens\":4} is no line",
        "a context of 5 tokens", "(one of them)", "other=on", "x-prompt_cache, max_tokens_wanted",
        "exact=", "the rule is rejection, but exact is on"}) {
    EXPECT_EQ(in_options(text), text);
  }
  EXPECT_EQ(in_options("'it (ctx"), "'it (ctx") << "quotes that do not close";
}

TEST(FieldWords, SayingItTwiceChangesNothing) {
  const std::string once = in_options("(ctx), exact=on, prompt_cache", kDraft);
  EXPECT_EQ(in_options(once), once);
  EXPECT_EQ(in_options(once, kDraft), once);
}

TEST(FieldWords, AFailureIsAboutItsOption) {
  const Status status = wrong_value("path", "''", "a GGUF file (ctx)");
  const Status draft = in_options(status, kDraft);
  EXPECT_EQ(draft.message(), "--draft-model is '', but must be a GGUF file (--draft-ctx)");
  EXPECT_EQ(draft.code(), status.code());
  EXPECT_EQ(option_message(draft), draft.message());
  EXPECT_EQ(option_message(status), "--model is '', but must be a GGUF file (--ctx)");
  EXPECT_TRUE(in_options(Status(), kDraft).ok());
}

// Every field that a model or a runtime has, in the form in which messages advise it.
TEST(FieldWords, NoFieldIsLeftWhereAnOptionBelongs) {
  const auto expect = [](const auto& field) {
    const std::string name(field.name);
    const std::string option = option_of(name);
    EXPECT_EQ(in_options(name + "=on"), option + (field.type() == "boolean" ? "=on" : " on"));
    EXPECT_EQ(in_options("(" + name + ")"), "(" + option + ")");
  };
  for (const Field<ModelOptions>& field : model_fields()) expect(field);
  for (const Field<RuntimeOptions>& field : runtime_fields()) expect(field);
}

}  // namespace
}  // namespace outrider::tools
