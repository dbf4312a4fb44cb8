#include "llama/schema/value_rules.h"

#include <cstdint>
#include <utility>

namespace outrider::llama {
namespace {

constexpr std::uint64_t kFirstNumber = 8907123456000000;  // of 16 digits, as many as JSON keeps

std::string name_of(std::size_t i) { return "outrider-value-" + std::to_string(i); }

}  // namespace

json::Json ValueRules::string_mark(std::string expression) {
  const std::string number = std::to_string(rules_.size());
  rules_.push_back({R"("\"\\u0001)" + number + R"(\"")", std::move(expression)});
  return {{"const", "\x01" + number}};
}

json::Json ValueRules::number_mark(std::string expression) {
  const std::uint64_t number = kFirstNumber + rules_.size();
  rules_.push_back({"\"" + std::to_string(number) + "\"", std::move(expression)});
  return {{"const", number}};
}

std::string ValueRules::write(std::string gbnf) const {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const std::string& literal = rules_[i].literal;
    bool used = false;
    for (std::size_t at = 0; (at = gbnf.find(literal, at)) != std::string::npos; used = true) {
      gbnf.replace(at, literal.size(), name_of(i));
    }
    if (used) gbnf += name_of(i) + " ::= " + rules_[i].expression + "\n";
  }
  return gbnf;
}

}  // namespace outrider::llama
