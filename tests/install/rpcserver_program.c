/* The least that an app of the seed's API does: see tests/install/check.py. */
#include <rpcserver.h>
#include <stdio.h>
#include <string.h>

/* Names that llama.cpp has as well: ours must not be those that the library calls. */
int llama_backend_init(void) { return 7; }
int ggml_init(void) { return 7; }

int main(void) {
  const int code = init("{\"model\":\"no such file\"}");
  const char* answer = poll_system_status();
  const int right = code == 1 && strstr(answer, "\"init_success\":-1") != NULL &&
                    llama_backend_init() + ggml_init() == 14;
  printf("rpcserver: %s\n", right ? "fine" : answer);
  rpc_free(answer);
  deinit();
  return right ? 0 : 1;
}
