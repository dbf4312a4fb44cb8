// Nodes of ours that stand for llama-common's of the same name: each judges what its parts came to
// (bounded_calls.h), and lets llama-common's do it.
//
// Tested by bounded_template_test.cc.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "jinja/runtime.h"
#include "llama/chat/bounded_calls.h"
#include "llama/chat/template_budget.h"

namespace outrider::llama::bounded {

using jinja::context;
using jinja::statement_ptr;
using jinja::value;

// A value that is known already, as an expression.
struct Known : jinja::expression {
  explicit Known(value v) : known(std::move(v)) {}
  std::string type() const override { return "Known"; }
  value execute_impl(context& /*ctx*/) const override { return known; }
  value known;
};

inline std::vector<value> run_all(const jinja::statements& expressions, context& ctx) {
  std::vector<value> values;
  for (const statement_ptr& one : expressions) values.push_back(one->execute(ctx));
  return values;
}

inline jinja::statements known_all(const std::vector<value>& values) {
  jinja::statements known;
  for (const value& one : values) known.push_back(std::make_unique<Known>(one));
  return known;
}

struct BoundedBinary : jinja::binary_expression {
  using binary_expression::binary_expression;
  value execute_impl(context& ctx) const override {
    if (op.value == "and" || op.value == "or") return binary_expression::execute_impl(ctx);
    value a = left->execute(ctx);
    value b = right->execute(ctx);
    check_operation(op.value, a, b, TemplateBudget::current());
    const binary_expression known(op, std::make_unique<Known>(std::move(a)),
                                  std::make_unique<Known>(std::move(b)));
    return known.execute_impl(ctx);
  }
};

// A filter is a name, or a name with arguments. What is neither, llama-common refuses.
inline value run_filter(const statement_ptr& filter, value self, context& ctx) {
  statement_ptr known;
  if (jinja::is_stmt<jinja::call_expression>(filter)) {
    const jinja::call_expression* call = jinja::cast_stmt<jinja::call_expression>(filter);
    if (!jinja::is_stmt<jinja::identifier>(call->callee)) {
      throw std::runtime_error("a filter must be a name");
    }
    const std::string& name = jinja::cast_stmt<jinja::identifier>(call->callee)->val;
    const std::vector<value> arguments = run_all(call->args, ctx);
    check_call(name, self, arguments, TemplateBudget::current());
    known = std::make_unique<jinja::call_expression>(std::make_unique<jinja::identifier>(name),
                                                     known_all(arguments));
  } else if (jinja::is_stmt<jinja::identifier>(filter)) {
    const std::string& name = jinja::cast_stmt<jinja::identifier>(filter)->val;
    check_call(name, self, {}, TemplateBudget::current());
    known = std::make_unique<jinja::identifier>(name);
  } else {
    throw std::runtime_error("a filter must be a name");
  }
  const jinja::filter_expression applied(std::make_unique<Known>(std::move(self)),
                                         std::move(known));
  return applied.execute_impl(ctx);
}

// Only `in` may take long.
struct BoundedTest : jinja::test_expression {
  using test_expression::test_expression;
  value execute_impl(context& ctx) const override {
    const jinja::call_expression* call = jinja::cast_stmt<jinja::call_expression>(test);
    const jinja::identifier* name =
        call == nullptr ? nullptr : jinja::cast_stmt<jinja::identifier>(call->callee);
    if (name == nullptr || name->val != "in") return test_expression::execute_impl(ctx);
    value tested = operand->execute(ctx);
    const std::vector<value> arguments = run_all(call->args, ctx);
    if (!arguments.empty()) {
      check_operation("in", tested, arguments.front(), TemplateBudget::current());
    }
    const test_expression known(
        std::make_unique<Known>(std::move(tested)), negate,
        std::make_unique<jinja::call_expression>(std::make_unique<jinja::identifier>(name->val),
                                                 known_all(arguments)));
    return known.execute_impl(ctx);
  }
};

struct BoundedSliceStep : jinja::expression {
  explicit BoundedSliceStep(statement_ptr step) : inner(std::move(step)) {}
  std::string type() const override { return inner->type(); }
  void visit(context& ctx) const override { inner->visit(ctx); }
  value execute_impl(context& ctx) const override {
    value step = inner->execute(ctx);
    check_slice_step(step, TemplateBudget::current());
    return step;
  }
  statement_ptr inner;
};

struct BoundedFilter : jinja::filter_expression {
  using filter_expression::filter_expression;
  value execute_impl(context& ctx) const override {
    return run_filter(filter, operand->execute(ctx), ctx);
  }
};

struct BoundedFilterBlock : jinja::filter_statement {
  using filter_statement::filter_statement;
  value execute_impl(context& ctx) const override {
    const jinja::value_array said = jinja::mk_val<jinja::value_array>();
    for (const statement_ptr& one : body) said->push_back(one->execute(ctx));
    return run_filter(filter, jinja::runtime::gather_string_parts(said), ctx);
  }
};

// Judges a list or an object that something was put into. One that is too much may hold itself, and
// would never be freed: it is emptied, as the template ends here.
inline void may_hold(const value& object, TemplateBudget& budget) {
  try {
    budget.may_make(written_size(object, budget));
  } catch (...) {
    object->val_arr.clear();
    object->val_obj.clear();
    if (jinja::is_val<jinja::value_object>(object)) {
      const_cast<jinja::value_object_t*>(jinja::cast_val<jinja::value_object>(object))
          ->unordered.clear();
    }
    throw;
  }
}

struct BoundedCall : jinja::call_expression {
  using call_expression::call_expression;
  value execute_impl(context& ctx) const override {
    TemplateBudget& budget = TemplateBudget::current();
    const std::vector<value> arguments = run_all(args, ctx);
    value called = callee->execute(ctx);
    if (!jinja::is_val<jinja::value_func>(called)) {
      throw std::runtime_error("Callee is not a function: got " + called->type());
    }
    const jinja::value_func_t* function =
        jinja::cast_val<jinja::value_func>(static_cast<const value&>(called));
    const std::string name = function->name;
    const value self = function->arg0;
    check_call(name, self, arguments, budget);
    const call_expression known(std::make_unique<Known>(std::move(called)), known_all(arguments));
    value made = known.execute_impl(ctx);
    // These can put a list into itself.
    if (name == "append" || name == "namespace") may_hold(made, budget);
    return made;
  }
};

// Calls macros; llama-common's own functions would not be judged here.
struct BoundedCallBlock : jinja::call_statement {
  using call_statement::call_statement;
  value execute_impl(context& ctx) const override {
    const jinja::call_expression* made = jinja::cast_stmt<jinja::call_expression>(call);
    const value called = made == nullptr ? nullptr : made->callee->execute(ctx);
    if (called == nullptr || !jinja::is_val<jinja::value_func>(called)) {
      throw std::runtime_error("a call block must call a macro");
    }
    const jinja::value_func_t* function = jinja::cast_val<jinja::value_func>(called);
    if (function->arg0 != nullptr || jinja::global_builtins().contains(function->name)) {
      throw std::runtime_error("a call block must call a macro");
    }
    return call_statement::execute_impl(ctx);
  }
};

// {% set a.b = ... %}, which can put an object into itself.
struct BoundedMemberSet : jinja::set_statement {
  using set_statement::set_statement;
  value execute_impl(context& ctx) const override {
    value done = set_statement::execute_impl(ctx);
    const jinja::member_expression* member = jinja::cast_stmt<jinja::member_expression>(assignee);
    const value object = member->object->execute(ctx);
    TemplateBudget& budget = TemplateBudget::current();
    for (const auto& [key, entry] : object->val_obj) {
      if (entry->val_arr.empty() && entry->val_obj.empty()) continue;
      may_hold(object, budget);
      break;
    }
    return done;
  }
};

}  // namespace outrider::llama::bounded
