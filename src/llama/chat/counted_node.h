// A node of a template that is counted by the budget.
#pragma once

#include <string>
#include <utility>

#include "jinja/runtime.h"
#include "llama/chat/template_budget.h"

namespace outrider::llama {

// One operation of the budget, and what it made. Whatever runs is below one of these.
struct Counted : jinja::expression {
  enum class Kind {
    kMakes,     // what comes out is new
    kLooks,     // it was there before
    kLiteral,   // new, and may hold much that was there before
    kIterated,  // each of its entries will be an operation
  };

  // `prints`: what comes out becomes part of the text, with all that it holds.
  Counted(jinja::statement_ptr child, Kind what, bool prints = false)
      : inner(std::move(child)), kind(what), is_printed(prints) {
    pos = inner->pos;
  }
  std::string type() const override { return inner->type(); }
  void visit(jinja::context& ctx) const override { inner->visit(ctx); }

  jinja::value execute_impl(jinja::context& ctx) const override {
    TemplateBudget& budget = TemplateBudget::current();
    budget.count();
    const Depth depth(budget);
    jinja::value made = inner->execute(ctx);
    if (kind == Kind::kIterated) budget.count(made->val_arr.size() + made->val_obj.size());
    if (kind == Kind::kLiteral) budget.may_make(written_size(made, budget));
    if (is_printed && !made->val_arr.empty()) {
      budget.made(written_size(made, budget));
    } else if (is_printed || kind != Kind::kLooks) {
      budget.made(own_size(made));
    }
    return made;
  }

  struct Depth {
    explicit Depth(TemplateBudget& held) : budget(held) { budget.enter(); }
    ~Depth() { budget.leave(); }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    TemplateBudget& budget;
  };

  jinja::statement_ptr inner;
  Kind kind;
  bool is_printed;
};

}  // namespace outrider::llama
