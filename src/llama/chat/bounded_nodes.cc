#include "llama/chat/bounded_nodes.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "llama/chat/bounded_calls.h"
#include "llama/chat/counted_node.h"
#include "llama/chat/template_budget.h"

namespace outrider::llama {
namespace {

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

std::vector<value> run_all(const jinja::statements& expressions, context& ctx) {
  std::vector<value> values;
  for (const statement_ptr& one : expressions) values.push_back(one->execute(ctx));
  return values;
}

jinja::statements known_all(const std::vector<value>& values) {
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
value run_filter(const statement_ptr& filter, value self, context& ctx) {
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
void may_hold(const value& object, TemplateBudget& budget) {
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

// Whether running it twice is the same as once.
bool only_looks(const statement_ptr& node) {
  if (jinja::is_stmt<jinja::identifier>(node)) return true;
  const jinja::member_expression* member = jinja::cast_stmt<jinja::member_expression>(node);
  return member != nullptr && !member->computed && only_looks(member->object);
}

class Binder {
 public:
  // Bounds what is below `node`, and puts a node of our own in its place.
  void run(statement_ptr& node, Counted::Kind kind = Counted::Kind::kMakes) {
    if (node == nullptr) return;
    if (is_leaf(node) && kind != Counted::Kind::kIterated) return;
    if (jinja::is_stmt<jinja::array_literal>(node) || jinja::is_stmt<jinja::tuple_literal>(node) ||
        jinja::is_stmt<jinja::object_literal>(node)) {
      kind = Counted::Kind::kLiteral;
    }
    if (kind == Counted::Kind::kMakes && looks(node)) kind = Counted::Kind::kLooks;
    below(node);
    node = std::make_unique<Counted>(std::move(node), kind);
  }

  void run(jinja::statements& nodes) {
    for (statement_ptr& node : nodes) run(node);
  }

 private:
  static bool is_leaf(const statement_ptr& node) {
    return jinja::is_stmt<jinja::string_literal>(node) || jinja::is_stmt<jinja::identifier>(node) ||
           jinja::is_stmt<jinja::integer_literal>(node) ||
           jinja::is_stmt<jinja::float_literal>(node) ||
           jinja::is_stmt<jinja::comment_statement>(node) ||
           jinja::is_stmt<jinja::break_statement>(node) ||
           jinja::is_stmt<jinja::continue_statement>(node) ||
           jinja::is_stmt<jinja::blank_expression>(node) ||
           jinja::is_stmt<jinja::noop_statement>(node);
  }

  static bool looks(const statement_ptr& node) {
    if (const jinja::member_expression* member = jinja::cast_stmt<jinja::member_expression>(node)) {
      return !jinja::is_stmt<jinja::slice_expression>(member->property);
    }
    return jinja::is_stmt<jinja::select_expression>(node) ||
           jinja::is_stmt<jinja::ternary_expression>(node);
  }

  template <typename Ours, typename... Parts>
  static void replace(statement_ptr& node, Parts&&... parts) {
    statement_ptr ours = std::make_unique<Ours>(std::forward<Parts>(parts)...);
    ours->pos = node->pos;
    node = std::move(ours);
  }

  // Names and arguments of filters, tests and macros, which llama-common wants as they are.
  void arguments_of(statement_ptr& node) {
    if (jinja::call_expression* call = jinja::cast_stmt<jinja::call_expression>(node))
      run(call->args);
  }
  void defaults(jinja::statements& parameters) {
    for (statement_ptr& one : parameters) {
      if (jinja::keyword_argument_expression* named =
              jinja::cast_stmt<jinja::keyword_argument_expression>(one))
        run(named->val);
    }
  }

  // What neither knows is not run by llama-common either.
  void below(statement_ptr& node) {
    if (!expression(node)) statement(node);
  }

  bool expression(statement_ptr& node) {
    if (jinja::binary_expression* e = jinja::cast_stmt<jinja::binary_expression>(node)) {
      run(e->left);
      run(e->right);
      replace<BoundedBinary>(node, e->op, std::move(e->left), std::move(e->right));
      return true;
    }
    if (jinja::filter_expression* e = jinja::cast_stmt<jinja::filter_expression>(node)) {
      run(e->operand);
      arguments_of(e->filter);
      replace<BoundedFilter>(node, std::move(e->operand), std::move(e->filter));
      return true;
    }
    if (jinja::call_expression* e = jinja::cast_stmt<jinja::call_expression>(node)) {
      run(e->args);
      run(e->callee);
      replace<BoundedCall>(node, std::move(e->callee), std::move(e->args));
      return true;
    }
    if (jinja::member_expression* e = jinja::cast_stmt<jinja::member_expression>(node)) {
      run(e->object);
      if (jinja::slice_expression* slice = jinja::cast_stmt<jinja::slice_expression>(e->property)) {
        run(slice->start_expr);
        run(slice->stop_expr);
        run(slice->step_expr);
      } else if (e->computed) {
        run(e->property);
      }
      return true;
    }
    if (jinja::select_expression* e = jinja::cast_stmt<jinja::select_expression>(node)) {
      run(e->lhs);
      run(e->test);
      return true;
    }
    if (jinja::test_expression* e = jinja::cast_stmt<jinja::test_expression>(node)) {
      run(e->operand);
      arguments_of(e->test);
      return true;
    }
    if (jinja::unary_expression* e = jinja::cast_stmt<jinja::unary_expression>(node)) {
      run(e->argument);
      return true;
    }
    if (jinja::keyword_argument_expression* e =
            jinja::cast_stmt<jinja::keyword_argument_expression>(node)) {
      run(e->val);
      return true;
    }
    if (jinja::ternary_expression* e = jinja::cast_stmt<jinja::ternary_expression>(node)) {
      run(e->condition);
      run(e->true_expr);
      run(e->false_expr);
      return true;
    }
    return literal(node);
  }

  bool literal(statement_ptr& node) {
    if (jinja::array_literal* e = jinja::cast_stmt<jinja::array_literal>(node)) {
      run(e->val);
      return true;
    }
    if (jinja::tuple_literal* e = jinja::cast_stmt<jinja::tuple_literal>(node)) {
      run(e->val);
      return true;
    }
    if (jinja::object_literal* e = jinja::cast_stmt<jinja::object_literal>(node)) {
      for (auto& [key, entry] : e->val) {
        run(key);
        run(entry);
      }
      return true;
    }
    return false;
  }

  bool statement(statement_ptr& node) {
    if (jinja::if_statement* s = jinja::cast_stmt<jinja::if_statement>(node)) {
      run(s->test);
      run(s->body);
      run(s->alternate);
      return true;
    }
    if (jinja::for_statement* s = jinja::cast_stmt<jinja::for_statement>(node)) {
      if (jinja::select_expression* chosen =
              jinja::cast_stmt<jinja::select_expression>(s->iterable)) {
        run(chosen->lhs, Counted::Kind::kIterated);
        run(chosen->test);
      } else {
        run(s->iterable, Counted::Kind::kIterated);
      }
      run(s->body);
      run(s->default_block);
      return true;
    }
    if (jinja::macro_statement* s = jinja::cast_stmt<jinja::macro_statement>(node)) {
      defaults(s->args);
      run(s->body);
      return true;
    }
    if (jinja::set_statement* s = jinja::cast_stmt<jinja::set_statement>(node)) {
      set(node, *s);
      return true;
    }
    if (jinja::filter_statement* s = jinja::cast_stmt<jinja::filter_statement>(node)) {
      arguments_of(s->filter);
      run(s->body);
      replace<BoundedFilterBlock>(node, std::move(s->filter), std::move(s->body));
      return true;
    }
    if (jinja::call_statement* s = jinja::cast_stmt<jinja::call_statement>(node)) {
      arguments_of(s->call);
      defaults(s->caller_args);
      run(s->body);
      replace<BoundedCallBlock>(node, std::move(s->call), std::move(s->caller_args),
                                std::move(s->body));
      return true;
    }
    return false;
  }

  void set(statement_ptr& node, jinja::set_statement& s) {
    run(s.val);
    run(s.body);
    const jinja::member_expression* member = jinja::cast_stmt<jinja::member_expression>(s.assignee);
    if (member == nullptr) return;
    if (!only_looks(member->object)) {
      throw std::runtime_error("it sets a member of what it calls for");
    }
    replace<BoundedMemberSet>(node, std::move(s.assignee), std::move(s.val), std::move(s.body));
  }
};

}  // namespace

void bound_program(jinja::program& program) { Binder().run(program.body); }

}  // namespace outrider::llama
