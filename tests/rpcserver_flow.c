/* An app of the seed's API, written as its user would: load, ask, watch, add a draft model while a
   text is being written, ask again faster, cancel, end, begin again.

   rpcserver_flow TARGET.gguf DRAFT.gguf [MS]
   With MS the process loads both, and ends after so many milliseconds, whatever it is at.
   Exit 0: all went as it should; 1: the line on the standard error says what did not. */
#define _POSIX_C_SOURCE 200809L /* nanosleep, fileno, fork */
#include <rpcserver.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures = 0;

static void check(int ok, const char* what, const char* answer) {
  if (ok) return;
  ++failures;
  fprintf(stderr, "not so: %s, in %.300s\n", what, answer == NULL ? "(no answer)" : answer);
}

/* The library's answers are compact JSON, so a field can be found as it is written. */
static int says(const char* answer, const char* part) { return strstr(answer, part) != NULL; }

/* Between two looks, and to the moment at which the process ends. No test depends on how long it
   is. */
static void sleep_ms(long ms) {
  struct timespec wait;
  wait.tv_sec = ms / 1000;
  wait.tv_nsec = ms % 1000 * 1000000;
  nanosleep(&wait, NULL);
}

/* What is waited for is looked at again and again: polling is all that this API has, no event and
   no call that waits for a part of a text. So many looks take two minutes at least, which is longer
   than any machine needs. */
#define LOOKS 60000
#define LOOK_MS 2

/* Waits until the status says `part`. */
static int wait_for_status(const char* part) {
  int i;
  for (i = 1; i <= LOOKS; ++i) {
    const char* status = poll_system_status();
    const int there = says(status, part);
    const int failed = says(status, "\"init_success\":-1") || says(status, "\"state\":\"failed\"");
    if (failed || (!there && i == LOOKS)) check(0, part, status);
    rpc_free(status);
    if (there || failed) return there;
    sleep_ms(LOOK_MS);
  }
  return 0;
}

/* Appends the text of every "content" in `answer`, escapes and all; returns the number of them. */
static int take_content(const char* answer, char* text, size_t size) {
  const char* key = "{\"content\":\"";
  int n = 0;
  while ((answer = strstr(answer, key)) != NULL) {
    answer += strlen(key);
    while (*answer != '"' && *answer != '\0') {
      const size_t step = *answer == '\\' ? 2 : 1;
      if (strlen(text) + step < size) strncat(text, answer, step);
      answer += step;
    }
    ++n;
  }
  return n;
}

/* Runs a request to its end. The text goes to `text`, the answer with the last update to `last`. */
static void run(const char* request, char* text, char* last, size_t size) {
  const char* started = async_completion_init(request);
  int finished = 0;
  int i;
  text[0] = last[0] = '\0';
  check(says(started, "\"success\":true"), "a completion starts", started);
  check(says(started, "\"prompt_stats\":{"), "it has prompt_stats", started);
  finished = !says(started, "\"success\":true");
  rpc_free(started);
  for (i = 1; !finished; ++i) {
    const char* answer = async_completion_poll("{}");
    take_content(answer, text, size);
    finished = says(answer, "\"finished\":true");
    if (finished) {
      last[size - 1] = '\0';
      strncpy(last, answer, size - 1);
    } else if (i == LOOKS) {
      check(0, "it comes to its end", answer);
      finished = 1;
    }
    free((void*)answer); /* the same as rpc_free */
    if (!finished) sleep_ms(LOOK_MS);
  }
}

static char plain[1 << 16], fast[1 << 16], last[1 << 16];

/* Waits until the newest completion has said something, and still runs. */
static void wait_for_text(void) {
  int over = 0;
  int i;
  last[0] = '\0';
  for (i = 1; !over; ++i) {
    const char* answer = async_completion_poll(NULL);
    const int finished = says(answer, "\"finished\":true");
    take_content(answer, last, sizeof last);
    over = finished || last[0] != '\0' || i == LOOKS;
    if (over) check(!finished && last[0] != '\0', "it has said something and goes on", answer);
    rpc_free(answer);
    if (!over) sleep_ms(LOOK_MS);
  }
}

/* A forked process has none of the library's threads: it is told so, and waits for none of them. */
static void ask_in_a_forked_process(void) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    int told;
    alarm(60);
    told = says(get_completion("{\"prompt\":\"A\",\"n_predict\":1}"), "forked") &&
           says(poll_system_status(), "forked") && init("{\"model\":\"no such file\"}") == 1;
    deinit();
    _exit(told ? 0 : 1);
  }
  check(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
            WEXITSTATUS(status) == 0,
        "a forked process is told that it is one", NULL);
}

static void flow(const char* target, const char* draft) {
  char cmd[4096];
  const char* answer;
  const char* request = "{\"prompt\":\"Once upon a time\",\"n_predict\":64,\"seed\":7}";
  const char* faster =
      "{\"prompt\":\"Once upon a time\",\"n_predict\":64,\"seed\":7,\"speculative\":true}";
  const char* endless =
      "{\"prompt\":\"A long one\",\"n_predict\":-1,\"seed\":1,\"ignore_eos\":true}";

  snprintf(cmd, sizeof cmd, "{\"model\":\"%s\",\"model_alias\":\"tiny\",\"n_ctx\":256}", target);
  init_async(cmd, false);
  memset(cmd, 'x', sizeof cmd - 1); /* the library has its own copy */
  if (!wait_for_status("\"init_success\":1")) return;

  answer = tokenize("{\"text\":\"Once upon a time\"}");
  check(says(answer, "\"success\":true,\"tokens\":["), "tokens", answer);
  rpc_free(answer);

  run(request, plain, last, sizeof last);
  check(says(last, "\"stopped_limit\":true"), "the limit ends it", last);
  check(says(last, "\"model\":\"tiny\""), "the alias is the model's name", last);
  check(says(last, "\"timings\":{\"prompt_n\":"), "it has timings", last);
  check(strlen(plain) > 0, "there is text", plain);

  /* The draft comes while a text is being written, which goes on. */
  answer = async_completion_init(endless);
  check(says(answer, "\"success\":true"), "an endless one starts", answer);
  rpc_free(answer);
  snprintf(cmd, sizeof cmd, "{\"model\":\"%s\"}", draft);
  init_async(cmd, true);
  if (!wait_for_status("\"draft\":{\"state\":\"ready\"")) return;
  answer = async_completion_poll(NULL);
  check(says(answer, "\"finished\":false"), "it still runs", answer);
  rpc_free(answer);
  answer = async_completion_cancel("");
  check(strcmp(answer, "{\"success\":true}") == 0, "it is cancelled", answer);
  rpc_free(answer);

  run(faster, fast, last, sizeof last);
  check(says(last, "\"speculation\":{\"enabled\":true"), "speculation was on", last);
  check(strcmp(plain, fast) == 0, "the text is the same, only faster", fast);

  answer = get_completion(request);
  check(says(answer, "\"status\":200"), "the synchronous call answers", answer);
  check(says(answer, "\"prompt_stats\":{"), "with prompt_stats", answer);
  last[0] = '\0';
  take_content(answer, last, sizeof last);
  check(strcmp(plain, last) == 0, "with the same text", answer);
  rpc_free(answer);

  deinit();
  answer = poll_system_status();
  check(says(answer, "\"init_success\":0"), "nothing is left", answer);
  rpc_free(answer);

  /* Again, as a command line, both models at once. */
  snprintf(cmd, sizeof cmd, "app -m '%s' -md '%s' -c 256 --no-mmap", target, draft);
  check(init(cmd) == 0, "init works again", NULL);
  run(faster, fast, last, sizeof last);
  check(strcmp(plain, fast) == 0, "and the text is the same again", fast);
  check(init("{\"model\":\"no such file\"}") == 1, "a file that is not there", NULL);
  ask_in_a_forked_process();

  /* The process ends while a text is being written. */
  answer = async_completion_init(endless);
  check(says(answer, "\"success\":true"), "what was there goes on serving", answer);
  rpc_free(answer);
  wait_for_text();
}

/* Ends while models are being loaded, probed or put to work: whatever they are at by then on this
   machine, the process must end in order. */
static int leave(const char* target, const char* draft, long ms) {
  char cmd[4096];
  snprintf(cmd, sizeof cmd, "{\"model\":\"%s\",\"model_draft\":\"%s\"}", target, draft);
  init_async(cmd, false);
  sleep_ms(ms);
  rpc_free(async_completion_init("{\"prompt\":\"A long one\",\"n_predict\":-1}"));
  return 0;
}

int main(int argc, char** argv) {
  FILE* output;
  if (argc == 4) return leave(argv[1], argv[2], atol(argv[3]));
  if (argc != 3) {
    fprintf(stderr, "usage: rpcserver_flow TARGET.gguf DRAFT.gguf [MS]\n");
    return 2;
  }
  /* The standard output is a file from here on, which the library must leave empty. */
  fflush(stdout);
  output = tmpfile();
  if (output == NULL || dup2(fileno(output), STDOUT_FILENO) < 0) return 2;
  flow(argv[1], argv[2]);
  fflush(stdout);
  check(lseek(STDOUT_FILENO, 0, SEEK_END) == 0, "nothing is printed", NULL);
  /* No deinit: the end of the process is the end of the library. */
  return failures == 0 ? 0 : 1;
}
