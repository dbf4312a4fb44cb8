#include "llama/chat/template_budget.h"

#include <algorithm>
#include <unordered_map>

namespace outrider::llama {
namespace {

thread_local TemplateBudget* current_budget = nullptr;

constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;

class SizeWalk {
 public:
  explicit SizeWalk(TemplateBudget& budget) : budget_(budget) {}

  std::uint64_t size(const jinja::value& value, int depth) {
    if (value == nullptr) return 1;
    if (value->val_arr.empty() && value->val_obj.empty()) {
      return 16 + value->val_str.length();
    }
    if (depth > TemplateBudget::kValueDepth) {
      budget_.stop("it nests lists more than " + std::to_string(TemplateBudget::kValueDepth) +
                   " deep, or in themselves");
    }
    const auto known = sizes_.find(value.get());
    if (known != sizes_.end()) return known->second;
    budget_.step(value->val_arr.size() + value->val_obj.size());
    std::uint64_t total = 16;
    for (const jinja::value& entry : value->val_arr) add(total, size(entry, depth + 1));
    for (const auto& [key, entry] : value->val_obj) {
      add(total, size(key, depth + 1));
      add(total, size(entry, depth + 1));
    }
    sizes_.emplace(value.get(), total);
    return total;
  }

 private:
  static void add(std::uint64_t& total, std::uint64_t more) {
    total = std::min(kHuge, total + more);
  }

  TemplateBudget& budget_;
  std::unordered_map<const jinja::value_t*, std::uint64_t> sizes_;
};

}  // namespace

TemplateBudget::TemplateBudget(std::uint64_t n_given)
    : outer_(current_budget), bytes_left_(kBytes + 64 * n_given) {
  current_budget = this;
}

TemplateBudget::~TemplateBudget() { current_budget = outer_; }

TemplateBudget& TemplateBudget::current() {
  if (current_budget == nullptr) throw TemplateTooCostly("a template runs without a budget");
  return *current_budget;
}

void TemplateBudget::stop(const std::string& why) const {
  if (why_.empty()) why_ = "the model's chat template was stopped: " + why;
  throw TemplateTooCostly(why_);
}

void TemplateBudget::step(std::uint64_t n) {
  if (exceeded()) stop(why_);
  if (n > steps_left_) stop("it takes more than " + std::to_string(kSteps) + " steps");
  steps_left_ -= n;
  if (watch_.elapsed_ms() > kSeconds * 1000.0) stop("it takes too long");
}

void TemplateBudget::may_make(std::uint64_t n_bytes) const {
  if (n_bytes > bytes_left_) stop("it makes more text than it may");
}

void TemplateBudget::made(std::uint64_t n_bytes) {
  may_make(n_bytes);
  bytes_left_ -= n_bytes;
}

void TemplateBudget::may_move(std::uint64_t n_bytes) const {
  if (n_bytes > kMoves) stop("it splits or replaces too much at once");
}

void TemplateBudget::enter() {
  if (depth_ >= kDepth) stop("its calls are more than " + std::to_string(kDepth) + " deep");
  ++depth_;
}

std::uint64_t written_size(const jinja::value& value, TemplateBudget& budget) {
  return SizeWalk(budget).size(value, 1);
}

std::uint64_t own_size(const jinja::value& value) {
  if (value == nullptr) return 0;
  return value->val_str.length() + 16 * (value->val_arr.size() + value->val_obj.size());
}

}  // namespace outrider::llama
