/* Asynchronous by polling, in C: the same text without and with speculation, and both speeds.
 *   cc c_poll.c $(pkg-config --cflags --libs outrider) -o c_poll && ./c_poll target.gguf draft.gguf
 */
#include <outrider.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The answer to a request; to be freed. Ends the program where there is none, or an error: that is
 * behind the request's id. One inside a result, such as why a model could not be loaded, is not. */
static char *ask(outrider *o, const char *method, const char *params) {
  char request[2048];
  char *answer;
  snprintf(request, sizeof request,
           "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}", method, params);
  answer = outrider_call(o, request);
  if (answer == NULL || strstr(answer, "\"result\":") == NULL) {
    fprintf(stderr, "%s: %s\n", method, answer == NULL ? "out of memory" : answer);
    exit(1);
  }
  return answer;
}

/* The number behind `name`; 0 when it is null or not there. A real program uses a JSON library. */
static double number(const char *json, const char *name) {
  const char *at = strstr(json, name);
  return at == NULL ? 0.0 : strtod(at + strlen(name), NULL);
}

/* Prints what is new of the text. */
static void print_text(const char *answer) {
  const char *at = strstr(answer, "\"updates\":[{\"text\":\"");
  for (at = at == NULL ? "" : at + 20; *at != '\0' && *at != '"'; ++at) {
    if (*at == '\\' && *++at == 'n') {
      putchar('\n');
    } else {
      putchar(*at);
    }
  }
  fflush(stdout);
}

/* Runs one completion to its end; its tokens ("1,2,3") go to `tokens`. Returns tokens a second. */
static double generate(outrider *o, int speculative, int n, char *tokens, size_t size) {
  char params[256];
  char *answer;
  double speed = 0.0;
  snprintf(params, sizeof params,
           "{\"prompt\":\"Once upon a time\",\"max_tokens\":%d,\"seed\":1,\"speculative\":%s}", n,
           speculative ? "true" : "false");
  answer = ask(o, "completion.start", params);
  snprintf(params, sizeof params, "{\"id\":%.0f,\"wait_ms\":1000}",
           number(answer, "\"result\":{\"id\":"));
  for (int finished = 0; !finished;) {
    outrider_free(answer);
    answer = ask(o, "completion.poll", params); /* an app would draw its next frame meanwhile */
    print_text(answer);
    finished = strstr(answer, "\"finished\":true") != NULL;
  }
  const char *result = strstr(answer, "\"finish_reason\"");
  const char *start = strstr(strstr(answer, "\"result\":{\"text\""), "\"tokens\":[");
  if (start != NULL && result != NULL) {
    snprintf(tokens, size, "%.*s", (int)strcspn(start + 10, "]"), start + 10);
    speed = number(result, "\"predicted_per_second\":");
  }
  outrider_free(answer);
  putchar('\n');
  return speed;
}

int main(int argc, char **argv) {
  static char plain[65536];
  static char fast[65536];
  char config[1024];
  char *error = NULL;
  if (argc < 3) return fprintf(stderr, "usage: c_poll TARGET.gguf DRAFT.gguf [TOKENS]\n"), 2;
  const int n = argc > 3 ? atoi(argv[3]) : 64;
  snprintf(config, sizeof config, "{\"model\":{\"path\":\"%s\"},\"draft\":{\"path\":\"%s\"}}",
           argv[1], argv[2]);
  outrider *o = outrider_create(config, &error);
  if (o == NULL) return fprintf(stderr, "%s\n", error), outrider_free(error), 1;
  char *status = ask(o, "system.status", "{\"wait_ms\":600000}"); /* an app would poll it */
  const int ready = strstr(status, "\"draft\":{\"state\":\"ready\"") != NULL;
  if (!ready) fprintf(stderr, "%s\n", status);
  outrider_free(status);
  if (!ready) return outrider_destroy(o), 1;
  const double slow_speed = generate(o, 0, n, plain, sizeof plain);
  const double fast_speed = generate(o, 1, n, fast, sizeof fast);
  printf("plain %.1f tokens/s, speculative %.1f tokens/s\n", slow_speed, fast_speed);
  outrider_destroy(o);
  const int equal = plain[0] != '\0' && strcmp(plain, fast) == 0;
  puts(equal ? "the texts are equal" : "the texts differ");
  return equal ? 0 : 1;
}
