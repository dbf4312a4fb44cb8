/* Outrider: local language models with speculative decoding, faster and with the same text.
 *
 * This is the whole interface for C and for everything that can call C. Methods, their parameters
 * and their results are JSON: outrider_call with "system.methods" lists methods and parameters,
 * docs/embedding.md results, states and errors.
 *
 *   char *error = NULL;
 *   outrider *o = outrider_create("{\"model\":{\"path\":\"target.gguf\"}}", &error);
 *   char *answer = outrider_call(o,
 *       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"system.status\",\"params\":{\"wait_ms\":60000}}");
 *   puts(answer);
 *   outrider_free(answer);
 *   outrider_destroy(o);
 *
 * Conventions:
 *
 * (1) Strings are UTF-8 and end in a NUL. An argument is copied before the function returns; bytes
 *     that are not UTF-8 are an error. What is returned is always valid UTF-8.
 *
 * (2) A char* that a function returns, or leaves in *error, belongs to the caller, who gives it to
 *     outrider_free. A const char* does not: that of outrider_version is valid as long as the
 *     process, those that a callback gets until the callback returns.
 *
 * (3) Every function may be called from any thread, at any time between create and destroy, also
 *     from inside a callback. None waits for a model to load or for text, except outrider_call with
 *     "completion.run", or with a "wait_ms" (0 to 3600000).
 *
 * (4) Nothing throws, aborts, prints or exits. What goes wrong is an answer with an "error", a NULL
 *     with its reason in *error (which is NULL, too, where no memory is left for it), or a number
 *     other than 0. A null pointer where none is allowed is an error too.
 *
 * (5) A process may have several instances. They share nothing but the log callback.
 *
 * (6) An instance is of the process that made it. In a forked child outrider_destroy leaves it alone,
 *     outrider_call answers with an error and outrider_subscribe with EINVAL. A child that is forked
 *     before the first instance makes its own; in one that is forked later outrider_create fails.
 */
#ifndef OUTRIDER_H_
#define OUTRIDER_H_

#if defined(_WIN32)
#define OUTRIDER_EXPORT
#elif defined(__GNUC__)
#define OUTRIDER_EXPORT __attribute__((visibility("default")))
#else
#define OUTRIDER_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Models, their threads, and the completions that run on them. */
typedef struct outrider outrider;

/* "0.1.0". Static: not to be freed. */
OUTRIDER_EXPORT const char *outrider_version(void);

/* A new instance with threads of its own: one loads models and files, one ends completions that have
 * run out of time, one calls outrider_subscribe's callback, and one decodes for each target that is
 * at work. `config_json` is an object, or NULL for the defaults:
 *
 *   "slots"          requests that run at once, 1 to 64; default 4. Each costs its context's memory
 *   "max_queue"      requests that wait, at most; from 0 on, default 256
 *   "prompt_chunk"   prompt tokens of a step while other texts go on, at least 1; default 128
 *   "prompt_share"   of the time, what reading one prompt takes from other texts that go on, 0.01 to
 *                    1 (no limit); default 0.2
 *   "reuse_prefix"   keep the state of ended texts for prompts that begin alike; default true
 *   "retention_ms"   how long a finished result waits to be polled, 1 to 31536000000 (a year);
 *                    default 60000
 *   "remember_tokens"  tokens of finished texts that the drafter suffix remembers, 1024 to 2097152
 *                    (136 bytes each), at most a quarter of them for one namespace; default 0: none.
 *                    Only completions that name a "namespace" are remembered, for that namespace
 *   "remember_folder"  a folder that keeps the remembered texts over restarts; default: none. It
 *                    is made for this user alone; one that cannot be written to is an error. What
 *                    it does not take when the target goes is told by the log (outrider_set_log)
 *                    and in system.status, "not_kept"
 *   "prompt_cache"   a folder that keeps what was read of ended texts over restarts, likewise;
 *                    default: none
 *   "prompt_cache_mib"  mebibytes that it may have, 1 to 1048576; default 2048
 *   "model"          a target to load at once: model.load's parameters without "role"
 *   "draft"          a draft model likewise
 *   "suffix_store"   a file, or an array of files, for the drafter suffix: stores that `outrider
 *                    suffix build` made for the target's tokenizer
 *   "ngram_static"   a file for the drafter ngram-cache, made by `outrider ngram create` from a
 *                    large corpus
 *   "ngram_dynamic"  another one, of earlier texts; both are only read
 *
 * Returns before the models are loaded: system.status and the events tell whether they could be.
 * On failure returns NULL and, where `error` is not NULL, leaves the reason in *error: a
 * text that names the field. On success *error is NULL. */
OUTRIDER_EXPORT outrider *outrider_create(const char *config_json, char **error);

/* Ends everything in any state: loads are cancelled, completions end with what they have and cannot
 * be polled any more, calls that wait return, threads are joined, memory is freed. Takes as long as
 * the target's step that is running and, with "remember_folder" or "prompt_cache", as writing what
 * is kept there: up to "prompt_cache_mib", behind 10 s where another process that is stopped has the
 * lock of "remember_folder". NULL has no effect.
 *
 * Calls of other threads that have begun are waited for; none may begin once this one has. No
 * callback runs any more when it returns, with one exception: called from inside a callback (also
 * of outrider_set_log), it returns at once, the rest is done in the background after the callback
 * has returned, and no further event comes. The process's normal exit waits for it.
 *
 * A process that exits without having destroyed an instance ends what it loads and computes first,
 * and writes what its folders keep: before any handler of atexit() where the main thread has created
 * an instance and is the one that exits. From then on calls are answered with an error, and no
 * callback is made. An exit() from inside the log callback ends nothing first and keeps nothing,
 * nor does a process that is killed or leaves by _exit(). */
OUTRIDER_EXPORT void outrider_destroy(outrider *instance);

/* JSON-RPC 2.0, by name: {"jsonrpc":"2.0","id":1,"method":"completion.start","params":{...}} gives
 * {"jsonrpc":"2.0","id":1,"result":{...}} or {"jsonrpc":"2.0","id":1,"error":{"code":-32602,
 * "message":"...","data":{"code":"invalid_argument","field":"top_p"}}}. Batches of at most 64,
 * answered in order; a notification, or a batch of notifications only, gives "". A request of more
 * than 16 MiB or 64 levels is an error.
 *
 * Methods: system.status, system.methods, model.load, model.cancel_load, model.unload, tokenize,
 * detokenize, completion.start, completion.poll, completion.cancel, completion.run, drafters.list,
 * stats.
 *
 * A completion's "speculative": {"drafters": [...]} names the drafters, which guess its next
 * tokens: "draft-model", which needs a draft model; "eagle3" and "dflash", which need a draft that
 * is such a head; "suffix", "ngram-cache" and "recycle", which every target has; "mtp", which needs
 * prediction layers in the target's file. When none is named: the draft ("draft-model", "eagle3" or
 * "dflash") and "mtp", where they are there, "suffix", and "ngram-cache", where it has files (with
 * the rules "rejection" and "block" the draft alone).
 * ["a","b"] merges their guesses, ["a/b"] asks b only where a has none. A drafter that is not
 * loaded guesses nothing, and "speculation"."reason" in the result says so; an unknown name is an
 * error, and so is "mtp" where the target has none. Drafters may be loaded and unloaded while
 * completions run, which changes no text:
 *
 *   model.load {"role":"draft","path":"draft.gguf"}                        a draft model
 *   model.load {"role":"drafter","drafter":"suffix","path":"my.store"}     a file of a drafter
 *   model.load {"role":"drafter","drafter":"ngram-cache","tier":"static","path":"my.ngrams"}
 *   model.unload {"role":"drafter","drafter":"suffix","path":"my.store"}   without "path": all
 *
 * The drafter ngram-cache reads one file a tier, "static" (the default) and "dynamic"; another one
 * is refused until the first is taken away.
 *
 * "speculative": {"namespace": "user-7"} says whose completion it is. With "remember_tokens", the
 * drafter suffix also guesses from earlier completions of that namespace, and this one's text is
 * added to them, also when it is cancelled, but not when it fails. No other namespace, and no
 * completion without one, ever sees it. "speculation"."remembered" in the result says how many
 * tokens were added, or the reason why none; drafters.list has the memory they take. They are freed
 * with the target.
 *
 * A file of another tokenizer, a damaged or a missing one is refused, and the files in use stay in
 * use; its "error" is in drafters.list and system.status. Files wait for a target, are opened anew
 * for the next one, and are closed when the target is unloaded.
 *
 * Returns NULL only when there is no memory even for an error's text; otherwise out of memory is an
 * error whose data.code is "resource_exhausted". */
OUTRIDER_EXPORT char *outrider_call(outrider *instance, const char *request_json);

/* Frees a string of this library. NULL has no effect. */
OUTRIDER_EXPORT void outrider_free(char *string);

/* An event: {"event":"model","role":"target"|"draft","state":...,"progress":...,...} while models
 * load, fail, come and go; {"event":"drafter","drafter":...,"path":...,"state":...,"error":...,...}
 * while drafters' files do; {"event":"completion","id":...,"updates":[...],"finished":...} with new
 * text, and "result" in the last one. They come in order, one at a time, on a thread of the
 * instance that does nothing else: a callback may be slow and may call every function,
 * outrider_destroy included. Events that wait for it are joined, so that a slow callback gets fewer
 * and larger ones (of one completion at most one waits between two of models and files). A completion
 * may be polled as well. {"event":"lost"} stands for events for which there was no memory, and comes
 * before those that wait: system.status and completion.poll say what they would have said. */
typedef void (*outrider_event_fn)(void *user, const char *event_json);

/* From now on events go to `callback` with `user`, in place of any earlier one; NULL: to nobody.
 * When it returns, the earlier one is not running any more (unless this is called from inside a
 * callback, also of another instance or of outrider_set_log). Returns 0; EINVAL when there is no
 * instance, ENOMEM when there is no memory (the earlier one stays). */
OUTRIDER_EXPORT int outrider_subscribe(outrider *instance, outrider_event_fn callback, void *user);

/* A line of the log, without a newline. Levels: 0 debug, 1 info, 2 warning, 3 error. Comes from any
 * thread of any instance, one at a time, also from the one that decodes: a callback must not wait
 * for a completion or a model (completion.run, "wait_ms"), which may be waiting for it. */
typedef void (*outrider_log_fn)(void *user, int level, const char *text);

/* From now on what the library and llama.cpp log while models load and run goes to `callback` with
 * `user`; NULL (the default): it is dropped. For the whole process, before or after instances are
 * created. When it returns, the earlier one is not running any more (unless this
 * is called from inside a callback). No effect in a child that was forked from a process whose
 * instances have logged. */
OUTRIDER_EXPORT void outrider_set_log(outrider_log_fn callback, void *user);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OUTRIDER_H_ */
