// What a chat template may do: so many operations, so many bytes, so deep, so long.
//
// llama-common's interpreter has no limit and no hook, so a template that loops 1e9 times blocks
// its thread for ever, one that doubles a text thirty times fills the memory, and one that calls
// itself, or prints a list that holds itself, overflows the stack. Here nodes of our own, which
// bounded_template.cc puts into the parsed program, ask the thread's budget before and after what
// may be large. What is stopped, and what is not:
//
//  - operations: each statement, expression and iteration is one; TemplateLimits::operations of
//    them.
//  - bytes: what texts and lists are made of, all that were ever made counted. Single operations
//    that multiply (range, "x" * n, replace, join, indent, format, tojson, map) are judged before
//    they begin, by what goes in; what is written out counts each time, with all that it holds.
//    What one operation copies to search, compare and sort is limited, too (kMoves).
//  - depth: of calls and expressions in each other (kDepth), and of lists and objects in each other
//    (kValueDepth); lists that hold themselves, and such as would be enormous when written out.
//  - time: TemplateLimits::seconds of the thread's processor time in all, so that what is ordinary
//    is not stopped where others have the cores; looked at with each operation. A single one is not
//    interrupted; by the limits above the longest take a few seconds.
//
// What a template does within that is its own: nothing that it can reach is outside of it
// (no files, no network; the time of day is all that it can ask for).
//
// Once a budget is exceeded, every further operation fails: llama-common passes over many failures.
//
// Tested by bounded_template_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/clock.h"
#include "jinja/value.h"

namespace outrider::llama {

// Thrown where a template does more than its budget allows. llama-common may turn it into another
// exception, or pass over it: TemplateBudget::exceeded() tells.
class TemplateTooCostly : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct TemplateLimits {
  std::uint64_t operations = 5'000'000;
  double seconds = 20.0;  // of processor time
};

// For tests, which cannot wait that long: budgets that are made on this thread while it lives have
// these limits.
class ScopedTemplateLimits {
 public:
  explicit ScopedTemplateLimits(const TemplateLimits& limits);
  ~ScopedTemplateLimits();
  ScopedTemplateLimits(const ScopedTemplateLimits&) = delete;
  ScopedTemplateLimits& operator=(const ScopedTemplateLimits&) = delete;

 private:
  TemplateLimits before_;
};

// While it lives, templates on this thread are held to it. They nest; the innermost counts.
class TemplateBudget {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{256} << 20;  // and 64 for each given byte
  static constexpr std::uint64_t kMoves = std::uint64_t{1} << 34;    // bytes that one call may move
  static constexpr int kDepth = 400;                                 // 0.5 to 1 MiB of stack
  static constexpr int kValueDepth = 100;

  // `n_given`: bytes of what the template gets.
  explicit TemplateBudget(std::uint64_t n_given);
  ~TemplateBudget();
  TemplateBudget(const TemplateBudget&) = delete;
  TemplateBudget& operator=(const TemplateBudget&) = delete;

  // This thread's. Throws TemplateTooCostly where there is none.
  static TemplateBudget& current();

  // Each throws TemplateTooCostly.
  void count(std::uint64_t n = 1);
  void may_make(std::uint64_t n_bytes) const;  // before
  void made(std::uint64_t n_bytes);            // after
  void may_move(std::uint64_t n_bytes) const;
  void enter();
  void leave() { --depth_; }
  [[noreturn]] void stop(const std::string& why) const;
  // Bytes above which both may_make() and may_move() throw.
  std::uint64_t most() const { return std::max(kMoves, bytes_left_); }

  // Operations of all templates that ran on this thread.
  static std::uint64_t counted();

  bool exceeded() const { return !why_.empty(); }
  const std::string& why() const { return why_; }

 private:
  TemplateBudget* outer_;
  Stopwatch watch_;
  const double begin_ms_ = thread_ms();
  const TemplateLimits limits_;
  std::uint64_t operations_left_;
  std::uint64_t bytes_left_;
  int depth_ = 0;
  mutable std::string why_;
};

// Bytes and entries of `value` when it is written out, about 2^60 for more than the budget's
// most(); what occurs twice counts twice. Throws TemplateTooCostly for one that is nested too deep
// or holds itself.
std::uint64_t written_size(const jinja::value& value, TemplateBudget& budget);

// Bytes of a text and its parts, entries of a list or an object, without what these hold.
std::uint64_t own_size(const jinja::value& value);

}  // namespace outrider::llama
