#include "llama/chat/bounded_template.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "llama/chat/template_budget.h"
#include "llama/files/model_file.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {
namespace {

constexpr const char* kRest =
    "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}";

std::string times(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

class BoundedTemplateTest : public ::testing::Test {
 protected:
  // What a template makes of one message, or why not.
  Result<std::string> render(const std::string& source, const std::string& content = "Hi") {
    testing::TinyModelOptions options;
    options.vocabulary.template_text = source;
    EXPECT_TRUE(testing::write_tiny_gguf(dir_.file("t.gguf"), options).ok());
    Result<std::shared_ptr<ModelFile>> file =
        ModelFile::load_vocabulary(dir_.file("t.gguf"), LoadHooks{});
    EXPECT_TRUE(file.ok()) << file.status().message();
    file_ = *file;
    return file_->vocabulary().chat_text({{.role = "user", .content = content}});
  }

  void expect_stopped(const std::string& source) {
    const Status status = render(source + kRest).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << source << status.message();
    EXPECT_NE(status.message().find("stopped"), std::string::npos)
        << source << ": " << status.message();
  }

  testing::TempDir dir_;
  std::shared_ptr<ModelFile> file_;
};

TEST_F(BoundedTemplateTest, WhatATemplateDoesIsTheSame) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{{ [1, 2, 3] | join('-') }} {{ 'abc' * 3 }} {{ 'a,b'.split(',') | length }}",
       "1-2-3 abcabcabc 2"},
      {"{% for i in range(3) %}{{ i }}{% if loop.last %}!{% endif %}{% endfor %}", "012!"},
      {"{% for i in range(6) if i % 2 == 0 %}{{ i }}{% else %}none{% endfor %}", "024"},
      {"{% macro m(a, b='x') %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(2, b='y') }}",
       "[1x][2y]"},
      {"{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}"
       "{{ ns.n }}",
       "6"},
      {"{% set t %}a{{ 1 + 1 }}b{% endset %}{{ t | upper }}{{ t.replace('a', 'zz') }}", "A2Bzz2b"},
      {"{% filter upper %}ab{{ 'c' }}{% endfilter %}", "ABC"},
      {"{{ {'a': [1, 'x'], 'b': none} | tojson }}", "{\"a\": [1, \"x\"], \"b\": null}"},
      {"{{ 'yes' if messages[0].content is string and 'H' in messages[0]['content'] else 'no' }}",
       "yes"},
      {"{{ 'a\nb' | indent(2) }}{{ messages[0].content[::-1] }}{{ 'x'.upper().lower() }}",
       "a\n  biHx"},
      {"{% set l = [] %}{% set _ = l.append('q') %}{{ l[0] }}{{ (1, 2)[1] }}{{ -3 | abs }}", "q23"},
      {"{% macro w() %}<{{ caller() }}>{% endmacro %}{% call w() %}in{% endcall %}", "<in>"},
      {"{% if false %}a{% elif true %}b{% else %}c{% endif %}{{ '{}!'.format('f') }}", "bf!"},
  };
  for (const auto& [source, expected] : cases) {
    const Result<std::string> made = render(source + "|" + kRest);
    ASSERT_TRUE(made.ok()) << source << ": " << made.status().message();
    EXPECT_EQ(*made, expected + "|user: Hi\nassistant: ") << source;
  }
}

TEST_F(BoundedTemplateTest, WhatWouldNotEndOrFillTheMemoryIsStopped) {
  const std::string loops = "{% for i in range(1000000000) %}{{ i }}{% endfor %}";
  const std::string doubles =
      "{% set ns = namespace(s='x') %}{% for i in range(30) %}{% set ns.s = ns.s + ns.s %}"
      "{% endfor %}{{ ns.s }}";
  const std::vector<std::string> cases = {
      loops,
      doubles,
      "{% set r = range %}{{ r(1000000000) | length }}",
      "{{ range(0, 9000000000000000000, 1) | length }}",
      "{{ 'x' * 1000000000 }}",
      "{{ 1000000000 * 'x' }}",
      "{% set s = 'x' * 100000 %}{{ s.replace('x', s) }}",
      "{% set s = 'x' * 100000 %}{% set f = s.replace %}{{ f('x', s) }}",
      "{% set s = 'x' * 100000 %}{{ s | replace('x', s) }}",
      "{% set s = 'x ' * 1000000 %}{{ s | replace('x', 'yy') }}",
      "{% set s = 'x ' * 1000000 %}{{ s.split(' ') | length }}",
      "{% set s = 'x' * 100000 %}{{ range(100000) | join(s) }}",
      "{{ 'a\nb' | indent(1000000000) }}",
      "{{ 'a\nb' | indent(width=1000000000) }}",
      "{{ [[1]] | tojson(indent=1000000000) }}",
      "{% set s = 'x' * 100000 %}{{ ('{}' * 100000).format(s) }}",
      "{% set s = 'x' * 100000 %}{% filter replace('x', s) %}{{ s }}{% endfilter %}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}",
      "{% set ns = namespace(a=1) %}{% set ns.a = ns %}{{ ns | tojson }}",
      "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}"
      "{% endfor %}{{ ns.a | tojson }}",
      "{% set ns = namespace(a=(1, 2)) %}{% for i in range(60) %}{% set ns.a = (ns.a, ns.a) %}"
      "{% endfor %}{{ ns.a == ns.a }}",
      "{% set ns = namespace(a=[1]) %}{% for i in range(5000) %}{% set ns.a = [ns.a] %}{% endfor "
      "%}",
  };
  for (const std::string& source : cases) expect_stopped(source);
}

// Lists hold the same text many times; who writes, copies or compares all of it would not end.
TEST_F(BoundedTemplateTest, WhatHoldsATextManyTimesIsStoppedWhereItIsUsed) {
  const std::string text = "{% set s = ['x' * 1000000] | join %}";
  const std::string list = text + "{% set l = [s] %}" + times("{% set l = l + l %}", 17);
  const std::string long_text =
      "{% set t = ['x' * 100000] | join %}"
      "{% set s = range(100) | map(attribute='q', default=t) | join %}";
  const std::vector<std::string> cases = {
      "{{ range(100000) | map(attribute='a', default='x' * 1000000) }}",
      "{{ range(200000) | map(attribute='a', default='x' * 1000000) | max }}",
      list + "{{ l }}",
      list + "{% if true %}{{ l }}{% endif %}",
      list + "{{ l | max }}",
      list + "{{ l | min }}",
      list + "{{ l | sort | length }}",
      list + "{{ l | upper | length }}",
      list + "{{ (s + 'y') in l }}",
      list + "{{ (s + 'y') is in(l) }}",
      list + "{{ l == l + [] }}",
      list + "{{ l | select('equalto', s) | list | length }}",
      "{{ range(200000) | select('in', range(200000)) | list | length }}",
      long_text + "{% for i in range(1000) %}{{ s }}{% endfor %}",
      long_text + "{% for i in range(1000) %}{% if i %}{{ s }}{% endif %}{% endfor %}",
      long_text + "{{ (s[:5000000] + 'y') in s }}",
      long_text + "{{ s.replace(s[:5000000] + 'y', '') | length }}",
      long_text + "{{ s.split(s[:5000000] + 'y') | length }}",
      long_text + "{{ s.strip('y' + s) | length }}",
      "{{ ('x' * 200000000) | length }}",
  };
  for (const std::string& source : cases) expect_stopped(source);
}

// A loop of 64-bit numbers that passes its end starts again from the other one.
TEST_F(BoundedTemplateTest, ACountThatWouldPassTheLargestNumberIsStopped) {
  for (const char* source : {"{{ range(1, 9223372036854775807, 4611686018427387904) | length }}",
                             "{{ range(0, -9223372036854775807, -4611686018427387905) | length }}",
                             "{{ range(0, 1000000000000.0) | length }}",
                             "{{ [1][::-9223372036854775807 - 1] | length }}",
                             "{{ [[1]] | tojson(indent=-4293967296) }}"}) {
    expect_stopped(source);
  }
}

TEST_F(BoundedTemplateTest, WhatIsOrdinaryWithListsGoesOn) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{{ range(0, 10, 3) | length }}{{ range(5, 0, -2) }}{{ range(3, 3) | length }}", "45310"},
      {"{{ [3, 1, 2] | sort }}{{ [1, 5, 2] | max }}{{ ['b', 'a'] | min }}", "1235a"},
      {"{{ [{'a': 2}, {'a': 1}] | sort(attribute='a') | map(attribute='a') | list }}", "12"},
      {"{{ [1, [2, 'a']] | map(attribute=0, default='d') | list }}", "d2"},
      {"{{ [{'r': 'u', 'c': 'x'}, {'r': 's', 'c': 'y'}] | selectattr('r', 'equalto', 's') | "
       "map(attribute='c') | list }}",
       "y"},
      {"{{ [{'r': 'u'}] | rejectattr('r', 'in', ['u']) | list | length }}", "0"},
      {"{{ 'a' in 'cab' and 1 in [1, 2] and 3 is in([1, 3]) and 'z' not in ['q'] }}", "True"},
      {"{{ 'xxaxx'.strip('x') }}{{ 'abcd'[1:3] }}{{ [1, 2, 3][::2] }}{{ [1, 2] == [1, 2] }}",
       "abc13True"},
      {"{% for i in range(6) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}"
       "{% endif %}{{ i }}{% endfor %}",
       "013"},
  };
  for (const auto& [source, expected] : cases) {
    const Result<std::string> made = render(source + "|" + kRest);
    ASSERT_TRUE(made.ok()) << source << ": " << made.status().message();
    EXPECT_EQ(*made, expected + "|user: Hi\nassistant: ") << source;
  }
}

// Not judged before they begin: only counting stops them, or the clock where operations are slow.
TEST_F(BoundedTemplateTest, WhatTakesTooManyStepsOrTooLongIsStopped) {
  const std::string nested =
      "{% for a in range(3000) %}{% for b in range(3000) %}{% endfor %}{% endfor %}";
  const std::string branches =
      "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
      "{{ f(40) }}";
  constexpr std::uint64_t kFewOperations = 100'000;
  for (const std::string& source : {nested, branches}) {
    const ScopedTemplateLimits few({.operations = kFewOperations});
    const Status counted = render(source + kRest).status();
    EXPECT_EQ(counted.code(), StatusCode::kUnsupported) << source;
    EXPECT_NE(counted.message().find("more than 100000 operations"), std::string::npos)
        << counted.message();
    const ScopedTemplateLimits brief({.operations = std::uint64_t{1} << 60, .seconds = 0.2});
    const Status timed = render(source + kRest).status();
    EXPECT_EQ(timed.code(), StatusCode::kUnsupported) << source;
    EXPECT_NE(timed.message().find("it takes too long"), std::string::npos) << timed.message();
  }
  const ScopedTemplateLimits few({.operations = kFewOperations});
  const std::string plain = "{% for i in range(50000) %}" + times("{{ 1 }}", 3) + "{% endfor %}";
  EXPECT_FALSE(render(plain + kRest).ok()) << "texts and numbers count, too";
  EXPECT_TRUE(render(kRest).ok()) << "what is ordinary takes far fewer";
  EXPECT_EQ(TemplateLimits().operations, 5'000'000U) << "what holds elsewhere";
  EXPECT_EQ(TemplateLimits().seconds, 20.0);
}

// As above, but only with what the conversation brings.
TEST_F(BoundedTemplateTest, WhatDependsOnTheMessagesIsStoppedWithThem) {
  const std::string source =
      "{% if messages[0].content == 'go' %}{% for i in range(1000000000) %}{{ i }}{% endfor %}"
      "{% endif %}";
  EXPECT_TRUE(render(source + kRest).ok());
  const Status status = render(source + kRest, "go").status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
}

TEST_F(BoundedTemplateTest, WhatNestsTooDeepIsRefusedBeforeItIsParsed) {
  for (const std::string& source :
       {"{{ " + times("(", 100000) + "1" + times(")", 100000) + " }}",
        "{{ " + times("[", 100000) + times("]", 100000) + " }}",
        "{{ " + times("not ", 100000) + "true }}", "{{ 1" + times(" + 1", 100000) + " }}",
        "{{ a" + times(".b", 100000) + " }}", "{{ a" + times("()", 100000) + " }}",
        "{{ a" + times("|b", 100000) + " }}", "{{ 1" + times(" if 1 else 1", 100000) + " }}",
        times("{% if true %}", 100000) + times("{% endif %}", 100000),
        "{% if true %}" + times("{% elif true %}", 100000) + "{% endif %}",
        times("{% for a in b %}", 100000), times("{% set a %}", 100000),
        times("{% if true %}{% endgeneration %}", 100000), times("{% macro a() %}", 100000),
        std::string(std::size_t{2} << 20, 'x')}) {
    const Status status = render(source).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << source.substr(0, 40);
  }
}

TEST_F(BoundedTemplateTest, WhatCannotBeParsedIsAnError) {
  for (const char* source : {"{% if %}", "{{ 1 +", "{% for x %}{% endfor %}", "{{ }}", "{% what %}",
                             "{% endif %}", "{{ 'a", "{% set a.b().c = 1 %}"}) {
    const Status status = render(source).status();
    EXPECT_FALSE(status.ok()) << source;
  }
}

TEST_F(BoundedTemplateTest, AMessageThatTheTemplateRefusesIsAnErrorWithItsReason) {
  const Status status = render("{{ raise_exception('only users here') }}").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("only users here"), std::string::npos) << status.message();
}

TEST_F(BoundedTemplateTest, ALongConversationIsWithinTheBounds) {
  std::vector<ChatMessage> messages;
  for (int i = 0; i < 10000; ++i) {
    messages.push_back({.role = i % 2 == 0 ? "user" : "assistant", .content = times("word ", 100)});
  }
  EXPECT_TRUE(render(kRest).ok());
  const Result<std::string> made = file_->vocabulary().chat_text(messages);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_GT(made->size(), 5'000'000u);
}

}  // namespace
}  // namespace outrider::llama
