#include "llama/chat/bounded_nodes.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include "llama/chat/bounded_expressions.h"
#include "llama/chat/counted_node.h"

namespace outrider::llama {
namespace {

using namespace bounded;  // NOLINT(google-build-using-namespace)

// Whether running it twice is the same as once.
bool only_looks(const statement_ptr& node) {
  if (jinja::is_stmt<jinja::identifier>(node)) return true;
  const jinja::member_expression* member = jinja::cast_stmt<jinja::member_expression>(node);
  return member != nullptr && !member->computed && only_looks(member->object);
}

class Binder {
 public:
  // Bounds what is below `node`, and puts a node of our own in its place.
  void run(statement_ptr& node, Counted::Kind kind = Counted::Kind::kMakes,
           bool is_printed = false) {
    if (node == nullptr) return;
    const bool leaf = is_leaf(node);
    if (leaf && kind != Counted::Kind::kIterated && !is_printed) return;
    if (jinja::is_stmt<jinja::array_literal>(node) || jinja::is_stmt<jinja::tuple_literal>(node) ||
        jinja::is_stmt<jinja::object_literal>(node)) {
      kind = Counted::Kind::kLiteral;
    }
    if (kind == Counted::Kind::kMakes && (leaf || looks(node))) kind = Counted::Kind::kLooks;
    below(node);
    node = std::make_unique<Counted>(std::move(node), kind, is_printed);
  }

  void run(jinja::statements& nodes) {
    for (statement_ptr& node : nodes) run(node);
  }

  // What each of them comes to becomes part of the text.
  void run_body(jinja::statements& nodes) {
    for (statement_ptr& node : nodes) run(node, Counted::Kind::kMakes, /*is_printed=*/true);
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
        if (slice->step_expr != nullptr) {
          run(slice->step_expr);
          slice->step_expr = std::make_unique<BoundedSliceStep>(std::move(slice->step_expr));
        }
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
      replace<BoundedTest>(node, std::move(e->operand), e->negate, std::move(e->test));
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
      run_body(s->body);
      run_body(s->alternate);
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
      run_body(s->body);
      run_body(s->default_block);
      return true;
    }
    if (jinja::macro_statement* s = jinja::cast_stmt<jinja::macro_statement>(node)) {
      defaults(s->args);
      run_body(s->body);
      return true;
    }
    if (jinja::set_statement* s = jinja::cast_stmt<jinja::set_statement>(node)) {
      set(node, *s);
      return true;
    }
    if (jinja::filter_statement* s = jinja::cast_stmt<jinja::filter_statement>(node)) {
      arguments_of(s->filter);
      run_body(s->body);
      replace<BoundedFilterBlock>(node, std::move(s->filter), std::move(s->body));
      return true;
    }
    if (jinja::call_statement* s = jinja::cast_stmt<jinja::call_statement>(node)) {
      arguments_of(s->call);
      defaults(s->caller_args);
      run_body(s->body);
      replace<BoundedCallBlock>(node, std::move(s->call), std::move(s->caller_args),
                                std::move(s->body));
      return true;
    }
    return false;
  }

  void set(statement_ptr& node, jinja::set_statement& s) {
    run(s.val);
    run_body(s.body);
    const jinja::member_expression* member = jinja::cast_stmt<jinja::member_expression>(s.assignee);
    if (member == nullptr) return;
    if (!only_looks(member->object)) {
      throw std::runtime_error("it sets a member of what it calls for");
    }
    replace<BoundedMemberSet>(node, std::move(s.assignee), std::move(s.val), std::move(s.body));
  }
};

}  // namespace

void bound_program(jinja::program& program) { Binder().run_body(program.body); }

}  // namespace outrider::llama
