#include "llama/chat/template_budget.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace outrider::llama {
namespace {

thread_local TemplateBudget* current_budget = nullptr;
thread_local TemplateLimits current_limits;
thread_local std::uint64_t all_counted = 0;

constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;

// Of a text with the memory of its parts: texts that are joined stay parts of their own.
std::uint64_t text_size(const jinja::value& value) {
  const std::vector<jinja::string_part>& parts = value->val_str.parts;
  const std::size_t n_more = parts.empty() ? 0 : parts.size() - 1;
  return value->val_str.length() + n_more * sizeof(jinja::string_part);
}

class SizeWalk {
 public:
  explicit SizeWalk(TemplateBudget& budget) : budget_(budget) {}

  std::uint64_t size(const jinja::value& value, int depth) {
    if (value == nullptr) return 1;
    if (value->val_arr.empty() && value->val_obj.empty()) {
      return 16 + text_size(value);
    }
    if (depth > TemplateBudget::kValueDepth) {
      budget_.stop("it nests lists more than " + std::to_string(TemplateBudget::kValueDepth) +
                   " deep, or in themselves");
    }
    const auto known = sizes_.find(value.get());
    if (known != sizes_.end()) return known->second;
    budget_.count(value->val_arr.size() + value->val_obj.size());
    std::uint64_t total = 16;
    for (const jinja::value& entry : value->val_arr) {
      add(total, size(entry, depth + 1));
      if (total == kHuge) break;
    }
    for (const auto& [key, entry] : value->val_obj) {
      add(total, size(key, depth + 1));
      add(total, size(entry, depth + 1));
      if (total == kHuge) break;
    }
    sizes_.emplace(value.get(), total);
    return total;
  }

 private:
  // What nothing may make or move need not be known exactly: the walk ends there, as the length of
  // a text of many parts takes long.
  void add(std::uint64_t& total, std::uint64_t more) const {
    total += more;
    if (total > budget_.most()) total = kHuge;
  }

  TemplateBudget& budget_;
  std::unordered_map<const jinja::value_t*, std::uint64_t> sizes_;
};

}  // namespace

ScopedTemplateLimits::ScopedTemplateLimits(const TemplateLimits& limits) : before_(current_limits) {
  current_limits = limits;
}

ScopedTemplateLimits::~ScopedTemplateLimits() { current_limits = before_; }

TemplateBudget::TemplateBudget(std::uint64_t n_given)
    : outer_(current_budget),
      limits_(current_limits),
      operations_left_(limits_.operations),
      bytes_left_(kBytes + 64 * n_given) {
  current_budget = this;
}

TemplateBudget::~TemplateBudget() { current_budget = outer_; }

TemplateBudget& TemplateBudget::current() {
  if (current_budget == nullptr) throw TemplateTooCostly("a template runs without a budget");
  return *current_budget;
}

std::uint64_t TemplateBudget::counted() { return all_counted; }

void TemplateBudget::stop(const std::string& why) const {
  if (why_.empty()) why_ = "the model's chat template was stopped: " + why;
  throw TemplateTooCostly(why_);
}

void TemplateBudget::count(std::uint64_t n) {
  if (exceeded()) stop(why_);
  if (n > operations_left_) {
    stop("it takes more than " + std::to_string(limits_.operations) + " operations");
  }
  operations_left_ -= n;
  all_counted += n;
  // The thread's own time, which takes ten times as long to ask for, is never more.
  const double most_ms = limits_.seconds * 1000.0;
  if (watch_.elapsed_ms() > most_ms && thread_ms() - begin_ms_ > most_ms) stop("it takes too long");
}

void TemplateBudget::may_make(std::uint64_t n_bytes) const {
  if (n_bytes > bytes_left_) stop("it makes more text than it may");
}

void TemplateBudget::made(std::uint64_t n_bytes) {
  may_make(n_bytes);
  bytes_left_ -= n_bytes;
}

void TemplateBudget::may_move(std::uint64_t n_bytes) const {
  if (n_bytes > kMoves) stop("it searches, compares or copies too much at once");
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
  return text_size(value) + 16 * (value->val_arr.size() + value->val_obj.size());
}

}  // namespace outrider::llama
