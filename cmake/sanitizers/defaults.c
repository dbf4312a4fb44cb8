/* How every program of a sanitized build runs, also by hand and as a child of a test, without any
 * environment variable (which still wins). llama.cpp and ggml are built without the check for undefined
 * behaviour (cmake/llama.cmake says why). Linked only where OUTRIDER_SANITIZE is set.
 * Paths are quoted: a space, a colon or a comma in one would end it, and the program. */

#define OUTRIDER_EXPORT __attribute__((visibility("default"), used))

OUTRIDER_EXPORT const char* __asan_default_options(void);
OUTRIDER_EXPORT const char* __lsan_default_options(void);
OUTRIDER_EXPORT const char* __ubsan_default_options(void);
OUTRIDER_EXPORT const char* __tsan_default_options(void);

const char* __asan_default_options(void) {
  return "strict_string_checks=1:detect_stack_use_after_return=1:check_initialization_order=1:"
         "detect_leaks=1";
}

const char* __lsan_default_options(void) {
  return "print_suppressions=0:suppressions='" OUTRIDER_SUPPRESSIONS "/lsan.supp'";
}

const char* __ubsan_default_options(void) {
  return "halt_on_error=1:print_stacktrace=1:suppressions='" OUTRIDER_SUPPRESSIONS "/ubsan.supp'";
}

const char* __tsan_default_options(void) {
  return "halt_on_error=1:second_deadlock_stack=1:suppressions='" OUTRIDER_SUPPRESSIONS "/tsan.supp'";
}
