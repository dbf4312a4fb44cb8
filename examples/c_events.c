/* Asynchronous by events, in C: the same text without and with speculation, and both speeds.
 *   cc c_events.c $(pkg-config --cflags --libs outrider) -pthread && ./a.out target.gguf draft.gguf
 */
#include <outrider.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the callback leaves for the main thread. */
struct state {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int loaded;      /* models that are ready */
  int failed;      /* a model could not be loaded */
  int finished;    /* completions */
  double speed[2]; /* tokens a second */
  char tokens[2][65536];
};

/* On a thread of the library, one event at a time. It may call the library. */
static void on_event(void *user, const char *event) {
  struct state *s = user;
  const char *result = strstr(event, "\"result\":{");
  pthread_mutex_lock(&s->mutex);
  if (strncmp(event, "{\"event\":\"model\"", 16) == 0) {
    if (strstr(event, "\"state\":\"ready\"") != NULL) ++s->loaded;
    if (strstr(event, "\"state\":\"failed\"") != NULL) {
      s->failed = 1;
      fprintf(stderr, "%s\n", event);
    }
  } else if (result != NULL && s->finished < 2) {
    const char *tokens = strstr(result, "\"tokens\":[");
    const char *speed = strstr(result, "\"predicted_per_second\":");
    if (tokens != NULL) {
      snprintf(s->tokens[s->finished], sizeof s->tokens[0], "%.*s",
               (int)strcspn(tokens + 10, "]"), tokens + 10);
    }
    if (speed != NULL) s->speed[s->finished] = strtod(speed + 23, NULL);
    ++s->finished;
  } else {
    putchar('.'); /* new text */
    fflush(stdout);
  }
  pthread_cond_signal(&s->changed);
  pthread_mutex_unlock(&s->mutex);
}

static void request(outrider *o, const char *method, const char *params) {
  char text[2048];
  char *answer;
  snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}",
           method, params);
  answer = outrider_call(o, text);
  if (answer == NULL || strstr(answer, "\"error\":{\"code\"") != NULL) {
    fprintf(stderr, "%s: %s\n", method, answer == NULL ? "out of memory" : answer);
    exit(1);
  }
  outrider_free(answer);
}

int main(int argc, char **argv) {
  static struct state s = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  char params[1024];
  if (argc < 3) return fprintf(stderr, "usage: c_events TARGET.gguf DRAFT.gguf [TOKENS]\n"), 2;
  outrider *o = outrider_create(NULL, NULL);
  if (o == NULL || outrider_subscribe(o, on_event, &s) != 0) return 1;
  snprintf(params, sizeof params, "{\"role\":\"target\",\"path\":\"%s\"}", argv[1]);
  request(o, "model.load", params);
  snprintf(params, sizeof params, "{\"role\":\"draft\",\"path\":\"%s\"}", argv[2]);
  request(o, "model.load", params);
  pthread_mutex_lock(&s.mutex);
  while (s.loaded < 2 && !s.failed) pthread_cond_wait(&s.changed, &s.mutex);
  for (int speculative = 0; speculative < 2 && !s.failed; ++speculative) {
    snprintf(params, sizeof params,
             "{\"prompt\":\"Once upon a time\",\"max_tokens\":%d,\"seed\":1,\"speculative\":%s}",
             argc > 3 ? atoi(argv[3]) : 64, speculative ? "true" : "false");
    pthread_mutex_unlock(&s.mutex);
    request(o, "completion.start", params); /* returns at once */
    pthread_mutex_lock(&s.mutex);
    while (s.finished <= speculative) pthread_cond_wait(&s.changed, &s.mutex);
  }
  pthread_mutex_unlock(&s.mutex);
  outrider_destroy(o);
  const int equal = s.tokens[0][0] != '\0' && strcmp(s.tokens[0], s.tokens[1]) == 0;
  printf("\nplain %.1f tokens/s, speculative %.1f tokens/s\n", s.speed[0], s.speed[1]);
  puts(equal ? "the texts are equal" : "the texts differ");
  return equal ? 0 : 1;
}
