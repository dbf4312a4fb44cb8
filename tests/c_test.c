/* The C interface as a C program sees it: compiled as C99, linked with the shared library.
 * Usage: c_test TARGET.gguf DRAFT.gguf. Exit 0: all is well; else the first thing that is not.
 *        c_test TARGET.gguf DRAFT.gguf load|text MS: ends the process MS milliseconds after both
 *        began to load, or a text began, and destroys nothing. MS only chooses a moment: whatever
 *        the library is at by then on this machine, the process must end in order.
 *        c_test TARGET.gguf DRAFT.gguf made-elsewhere|on-thread|while-destroyed|in-callback MS:
 *        ends the process while both are loaded; made on another thread, by another thread, while
 *        another one destroys, from inside a callback (at its first event, whatever MS is).
 *        c_test TARGET.gguf DRAFT.gguf keeps MS: a process that destroys nothing keeps what it
 *        learned for the next one, where the config has folders for it. */
#define _XOPEN_SOURCE 700 /* nanosleep, pause, clock_gettime, fork, mkdtemp, nftw */
#include <ftw.h>
#include <outrider.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures = 0;

static void check(int right, const char* what, int line) {
  if (right) return;
  fprintf(stderr, "c_test.c:%d: not so: %s\n", line, what);
  ++failures;
}
#define CHECK(condition) check((condition) ? 1 : 0, #condition, __LINE__)

/* Calls and keeps the answer in a buffer that the next call frees. */
static const char* ask(outrider* o, const char* method, const char* params) {
  static char* answer = NULL;
  char request[4096];
  outrider_free(answer);
  snprintf(request, sizeof request,
           "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}", method, params);
  answer = outrider_call(o, request);
  CHECK(answer != NULL);
  return answer != NULL ? answer : "";
}

static int has(const char* text, const char* part) { return strstr(text, part) != NULL; }

/* Copies what stands between `before` and `end` to `out`. */
static void between(const char* text, const char* before, const char* end, char* out, size_t size) {
  const char* start = strstr(text, before);
  const char* stop = start == NULL ? NULL : strstr(start + strlen(before), end);
  size_t n = 0;
  if (stop != NULL) {
    start += strlen(before);
    n = (size_t)(stop - start) < size - 1 ? (size_t)(stop - start) : size - 1;
    memcpy(out, start, n);
  }
  out[n] = '\0';
}

struct heard {
  pthread_mutex_t mutex; /* guards what follows */
  pthread_cond_t changed;
  int finished;
};

static void on_event(void* user, const char* event) {
  struct heard* heard = user;
  pthread_mutex_lock(&heard->mutex);
  if (has(event, "\"finished\":true")) ++heard->finished;
  pthread_cond_signal(&heard->changed);
  pthread_mutex_unlock(&heard->mutex);
}

/* Until so many completions were heard to finish. 0: they were not within a minute. */
static int wait_until_finished(struct heard* heard, int finished) {
  struct timespec end;
  int waited = 0;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 60;
  pthread_mutex_lock(&heard->mutex);
  while (heard->finished < finished && waited == 0) {
    waited = pthread_cond_timedwait(&heard->changed, &heard->mutex, &end);
  }
  waited = heard->finished >= finished;
  pthread_mutex_unlock(&heard->mutex);
  return waited;
}

static void on_log(void* user, int level, const char* text) {
  int* lines = user;
  if (level >= 0 && level <= 3 && text[0] != '\0') ++*lines;
}

static void misuse(void) {
  char* error = NULL;
  char* answer;
  CHECK(outrider_version()[0] != '\0');
  outrider_free(NULL);
  outrider_destroy(NULL);
  CHECK(outrider_subscribe(NULL, NULL, NULL) != 0);
  answer = outrider_call(NULL, NULL);
  CHECK(answer != NULL && has(answer, "\"error\""));
  outrider_free(answer);
  CHECK(outrider_create("{\"slots\":0}", &error) == NULL);
  CHECK(error != NULL && has(error, "slots"));
  outrider_free(error);
  CHECK(outrider_create("not json", NULL) == NULL);
}

static void no_model(void) {
  char* error = NULL;
  outrider* o = outrider_create(NULL, &error);
  CHECK(o != NULL && error == NULL);
  CHECK(has(ask(o, "system.status", "{}"), "\"state\":\"absent\""));
  CHECK(has(ask(o, "completion.run", "{\"prompt\":\"x\"}"), "\"not_found\""));
  CHECK(has(ask(o, "nothing", "{}"), "-32601"));
  CHECK(has(ask(o, "model.load", "{\"role\":\"target\",\"path\":\"/no/such/file.gguf\"}"),
            "\"loading\""));
  CHECK(has(ask(o, "system.status", "{\"wait_ms\":60000}"), "\"state\":\"failed\""));
  outrider_destroy(o);
}

/* The same text with speculation and without, polled and in one call. */
static void texts(const char* target, const char* draft) {
  char config[2048];
  char plain[2048];
  char fast[2048];
  char polled[2048];
  char id[32];
  char params[128];
  struct heard heard = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
  outrider* o;
  snprintf(config, sizeof config,
           "{\"slots\":2,\"model\":{\"path\":\"%s\",\"ctx\":512,\"threads\":1},"
           "\"draft\":{\"path\":\"%s\",\"ctx\":512,\"threads\":1}}",
           target, draft);
  o = outrider_create(config, NULL);
  CHECK(o != NULL);
  CHECK(has(ask(o, "system.status", "{\"wait_ms\":120000}"), "\"draft\":{\"state\":\"ready\""));
  CHECK(outrider_subscribe(o, on_event, &heard) == 0);
  between(ask(o, "completion.run",
              "{\"prompt\":\"Once upon\",\"max_tokens\":40,\"seed\":5,\"speculative\":false}"),
          "\"tokens\":[", "]", plain, sizeof plain);
  between(ask(o, "completion.run", "{\"prompt\":\"Once upon\",\"max_tokens\":40,\"seed\":5}"),
          "\"tokens\":[", "]", fast, sizeof fast);
  CHECK(plain[0] != '\0' && strcmp(plain, fast) == 0);
  between(ask(o, "completion.start", "{\"prompt\":\"Once upon\",\"max_tokens\":40,\"seed\":5}"),
          "\"result\":{\"id\":", ",", id, sizeof id);
  snprintf(params, sizeof params, "{\"id\":%s,\"wait_ms\":10000}", id);
  for (;;) {
    const char* answer = ask(o, "completion.poll", params);
    if (!has(answer, "\"finished\":false")) {
      between(answer, "\"tokens\":[", "]", polled, sizeof polled);
      between(strstr(answer, "\"result\":{\"text\"") ? strstr(answer, "\"result\":{\"text\"") : "",
              "\"tokens\":[", "]", polled, sizeof polled);
      break;
    }
  }
  CHECK(strcmp(plain, polled) == 0);
  CHECK(has(ask(o, "completion.poll", params), "\"not_found\""));
  CHECK(has(ask(o, "completion.start", "{\"prompt\":\"x\",\"max_tokens\":500,\"seed\":1}"),
            "\"id\""));
  CHECK(wait_until_finished(&heard, 3)); /* destroying drops what has not been told by then */
  outrider_destroy(o);                   /* one is running */
}

static outrider* create(const char* target, const char* draft) {
  char config[2048];
  snprintf(config, sizeof config, "{\"model\":{\"path\":\"%s\"},\"draft\":{\"path\":\"%s\"}}",
           target, draft);
  return outrider_create(config, NULL);
}

static outrider* made_elsewhere;
static const char* paths[2];

static void* create_elsewhere(void* unused) {
  (void)unused;
  made_elsewhere = create(paths[0], paths[1]);
  return NULL;
}

static void* exit_elsewhere(void* unused) {
  (void)unused;
  exit(failures == 0 ? 0 : 1);
}

static void* destroy_elsewhere(void* instance) {
  outrider_destroy(instance);
  return NULL;
}

static pthread_mutex_t both_asked_for = PTHREAD_MUTEX_INITIALIZER; /* locked until they are */

static void exit_in_event(void* user, const char* event) {
  (void)user;
  (void)event;
  pthread_mutex_lock(&both_asked_for);
  exit(failures == 0 ? 0 : 1);
}

static void load(outrider* o, const char* role, const char* path) {
  char params[2048];
  snprintf(params, sizeof params, "{\"role\":\"%s\",\"path\":\"%s\"}", role, path);
  CHECK(has(ask(o, "model.load", params), "\"result\""));
}

/* Loads when somebody listens, so that there is an event, and ends the process in the first one. */
static int leave_in_callback(const char* target, const char* draft) {
  outrider* o = outrider_create(NULL, NULL);
  CHECK(o != NULL);
  pthread_mutex_lock(&both_asked_for);
  CHECK(outrider_subscribe(o, exit_in_event, NULL) == 0);
  load(o, "target", target);
  load(o, "draft", draft);
  pthread_mutex_unlock(&both_asked_for);
  while (pause() != 0) continue; /* the callback ends the process */
  return 1;
}

/* To the moment at which the process ends. The time is what these tests are about: any moment is
   right, so a slow machine, where the library has come less far by then, cannot make one fail. */
static void wait_until_moment(long ms) {
  const struct timespec wait = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&wait, NULL);
}

/* The app forgets to destroy what it has. */
static int leave(const char* target, const char* draft, int in_text, long ms) {
  outrider* o = create(target, draft);
  CHECK(o != NULL);
  if (in_text) {
    CHECK(has(ask(o, "system.status", "{\"wait_ms\":120000}"), "\"ready\""));
    CHECK(has(
        ask(o, "completion.start", "{\"prompt\":\"x\",\"max_tokens\":100000,\"ignore_eos\":true}"),
        "\"id\""));
  }
  wait_until_moment(ms);
  return failures == 0 ? 0 : 1;
}

/* The same, in ways that are less common. */
static int leave_oddly(const char* target, const char* draft, const char* how, long ms) {
  outrider* o = NULL;
  pthread_t thread;
  paths[0] = target;
  paths[1] = draft;
  if (strcmp(how, "made-elsewhere") == 0) {
    CHECK(pthread_create(&thread, NULL, create_elsewhere, NULL) == 0);
    pthread_join(thread, NULL);
    o = made_elsewhere;
    CHECK(create(target, draft) != NULL); /* and one here */
  } else {
    o = create(target, draft);
  }
  CHECK(o != NULL);
  wait_until_moment(ms);
  if (strcmp(how, "on-thread") == 0) {
    CHECK(pthread_create(&thread, NULL, exit_elsewhere, NULL) == 0);
    pthread_join(thread, NULL);
  }
  if (strcmp(how, "while-destroyed") == 0) {
    CHECK(pthread_create(&thread, NULL, destroy_elsewhere, o) == 0);
    pthread_detach(thread); /* nobody waits for it */
  }
  return failures == 0 ? 0 : 1;
}

static int remove_one(const char* path, const struct stat* what, int flag, struct FTW* where) {
  (void)what;
  (void)flag;
  (void)where;
  return remove(path);
}

/* Says a text that is remembered in `folder`. Sets `cached` to what was known of its prompt. */
static outrider* say(const char* target, const char* folder, int earlier_texts, char cached[32]) {
  char config[2048];
  char expected[64];
  outrider* o;
  snprintf(config, sizeof config,
           "{\"model\":{\"path\":\"%s\",\"ctx\":512},\"remember_tokens\":4096,"
           "\"remember_folder\":\"%s/texts\",\"prompt_cache\":\"%s/prompts\"}",
           target, folder, folder);
  o = outrider_create(config, NULL);
  CHECK(o != NULL);
  snprintf(expected, sizeof expected, "\"namespaces\":%d", earlier_texts);
  CHECK(has(ask(o, "system.status", "{\"wait_ms\":120000}"), "\"ready\""));
  CHECK(has(ask(o, "drafters.list", "{}"), expected));
  between(ask(o, "completion.run",
              "{\"prompt\":\"Once upon a time there was a fox\",\"max_tokens\":40,\"seed\":5,"
              "\"ignore_eos\":true,\"speculative\":{\"namespace\":\"a\"}}"),
          "\"cached_tokens\":", ",", cached, 32);
  return o;
}

/* The first process is a child, forked before this one has an instance. */
static int leave_with_folders(const char* target) {
  char folder[] = "/tmp/outrider-keeps-XXXXXX";
  char cached[32];
  int status = -1;
  pid_t child;
  CHECK(mkdtemp(folder) != NULL);
  child = fork();
  if (child == 0) {
    say(target, folder, 0, cached);
    CHECK(strcmp(cached, "0") == 0);
    exit(failures == 0 ? 0 : 1);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
        WEXITSTATUS(status) == 0);
  outrider_destroy(say(target, folder, 1, cached)); /* what it writes is removed, too */
  CHECK(atol(cached) > 0);
  CHECK(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
  return failures == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  int lines = 0;
  if (argc == 5 && strcmp(argv[3], "keeps") == 0) return leave_with_folders(argv[1]);
  if (argc == 5 && strcmp(argv[3], "in-callback") == 0) return leave_in_callback(argv[1], argv[2]);
  if (argc == 5 && strcmp(argv[3], "load") != 0 && strcmp(argv[3], "text") != 0) {
    return leave_oddly(argv[1], argv[2], argv[3], atol(argv[4]));
  }
  if (argc == 5) return leave(argv[1], argv[2], strcmp(argv[3], "text") == 0, atol(argv[4]));
  if (argc != 3) {
    fprintf(stderr, "usage: c_test TARGET.gguf DRAFT.gguf\n");
    return 2;
  }
  outrider_set_log(on_log, &lines);
  misuse();
  no_model();
  texts(argv[1], argv[2]);
  outrider_set_log(NULL, NULL);
  CHECK(lines > 0);
  if (failures == 0) puts("c_test: all is well");
  return failures == 0 ? 0 : 1;
}
