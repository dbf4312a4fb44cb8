#include "tools/model_news.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outrider::tools {
namespace {

using Lines = std::vector<std::string>;

CatalogStatus ready(const std::string& name) {
  CatalogStatus model{.name = name, .path = "/x/" + name, .state = ModelState::kReady};
  model.complete = true;
  model.loads_ended = 1;
  return model;
}

TEST(ModelNews, AModelThatIsAsItShouldBeIsNoNews) {
  ModelNews news;
  EXPECT_EQ(news.of({ready("a"), {.name = "b"}}), Lines{});
  EXPECT_TRUE(drafting_error(ready("a")).ok());
}

TEST(ModelNews, ANoteIsToldOnceAlsoOfAModelThatIsOpenedLater) {
  ModelNews news;
  CatalogStatus later = ready("b");
  later.notes = {"prompt_cache has no effect"};
  EXPECT_EQ(news.of({ready("a"), {.name = "b"}}), Lines{});
  EXPECT_EQ(news.of({ready("a"), later}), Lines{"model 'b': --prompt-cache has no effect"});
  later.loads_ended = 2;
  EXPECT_EQ(news.of({ready("a"), later}), Lines{});
}

TEST(ModelNews, AFailedLoadIsToldOnceUntilOneSucceeds) {
  ModelNews news;
  CatalogStatus model{.name = "a", .state = ModelState::kFailed};
  model.loads_ended = 1;
  model.last_load = not_found("no such file");
  const Lines failed = {"model 'a' cannot be opened: no such file"};
  EXPECT_EQ(news.of({model}), failed);
  EXPECT_EQ(news.of({model}), Lines{});
  model.loads_ended = 2;
  EXPECT_EQ(news.of({model}), Lines{}) << "a client asks every second";
  model.loads_ended = 3;
  model.last_load = cancelled("unloaded");
  EXPECT_EQ(news.of({model}), Lines{});
  model.loads_ended = 4;
  model.last_load = Status();
  EXPECT_EQ(news.of({model}), Lines{});
  model.loads_ended = 5;
  model.last_load = not_found("no such file");
  EXPECT_EQ(news.of({model}), failed);
}

TEST(ModelNews, EveryTargetThatIsLostIsTold) {
  ModelNews news;
  CatalogStatus model = ready("a");
  EXPECT_EQ(news.of({model}), Lines{});
  for (int n = 1; n < 3; ++n) {
    model.n_lost = static_cast<std::uint64_t>(n);
    model.lost = internal_error("its process died");
    EXPECT_EQ(news.of({model}), Lines{"model 'a' is lost: its process died; it is opened again"});
    EXPECT_EQ(news.of({model}), Lines{});
  }
  EXPECT_EQ(news.of({ready("first"), model}), Lines{});
  model.n_lost = 3;
  EXPECT_EQ(news.of({ready("first"), model}),
            Lines{"model 'a' is lost: its process died; the next request opens it again"});
}

TEST(ModelNews, ADraftAndFilesThatCannotBeUsedAreErrors) {
  ModelNews news;
  CatalogStatus model = ready("a");
  model.failed_files = {{.file = {"suffix", "s.store"}, .error = not_found("no 's.store'")}};
  EXPECT_EQ(drafting_error(model).message(), "--suffix-store: no 's.store'");
  model.draft_error = not_found("no 'd.gguf'");
  EXPECT_EQ(drafting_error(model).message(), "no 'd.gguf'");
  EXPECT_EQ(news.of({model}),
            (Lines{"model 'a': no 'd.gguf'; it answers without",
                   "model 'a': --suffix-store: no 's.store'; it answers without"}));
  model.draft_error = cancelled("a client has unloaded it");
  model.failed_files.clear();
  EXPECT_TRUE(drafting_error(model).ok());
}

}  // namespace
}  // namespace outrider::tools
