/* The least that an embedder writes: see tests/install/check.py. */
#include <outrider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names that llama.cpp has as well: ours must not be those that the library calls. */
int llama_backend_init(void) { return 7; }
int ggml_init(void) { return 7; }

int main(void) {
  outrider* o = outrider_create(NULL, NULL);
  char* answer =
      outrider_call(o, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"system.status\",\"params\":{}}");
  const char* commit = getenv("EXPECTED_COMMIT");
  const int right = answer != NULL && strstr(answer, "\"absent\"") != NULL &&
                    (commit == NULL || strstr(answer, commit) != NULL) &&
                    llama_backend_init() + ggml_init() == 14;
  printf("outrider %s: %s\n", outrider_version(), right ? "fine" : answer);
  outrider_free(answer);
  outrider_destroy(o);
  return right ? 0 : 1;
}
