/* rpcserver.h: speculative decoding behind the JSON API of apps that had a server of their own.
   An app that was written against these functions runs unchanged. It runs faster when it asks for
   it: load a draft model with init_async(cmd, true) and send "speculative": true with a request.

   outrider.h has the same runtime with handles, events and any number of completions at once; take
   that for new code. docs/migrating.md says how an app moves here, step by step.

   Conventions:

   (1) There is one runtime in a process. init or init_async creates it, deinit ends it, and init
       works again afterwards. Before the first init and after deinit every function still answers.

   (2) Requests and answers are JSON texts, zero-terminated UTF-8. Answers are compact; bytes that
       are not UTF-8 are U+FFFD in them, numbers that are not finite are null.

   (3) Every returned string belongs to the caller, who frees it by rpc_free() or free(). It is
       never NULL. Arguments are copied before the call returns. They may be NULL, which is answered
       like any other wrong argument, unless it is said otherwise below.

   (4) All functions may be called from any thread at any time, deinit included. init,
       get_completion and deinit wait; the others never wait for loading or decoding. A process
       that is forked behind the first init has none of the threads: there init gives 1, deinit does
       nothing, and the others answer with an error that says so.

   (5) Nothing is thrown or aborts across this interface, nothing is printed on the standard output.
       What is wrong with a request is in its answer: {"success": false, "error": text}, with
       "field" where one field is to blame.

   (6) Unknown options are ignored and named in the answer's "warnings". An option that cannot be
       honoured is an error that names it. null stands for the default. */

#ifndef RPCSERVER_H_
#define RPCSERVER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that the shared library offers; everything else in it is hidden. */
#if defined(_WIN32)
#define RPCSERVER_API
#else
#define RPCSERVER_API __attribute__((visibility("default")))
#endif

/* Loads the target, and the draft model when `cmd` names one, and waits for both. Returns 0 when
   the target is ready, else 1, with the reason in poll_system_status's "error". A draft that cannot
   be loaded does not make it 1: "draft" in the status has its error.

   `cmd` is JSON when it starts with '{', else a command line, whose first word is a program's name
   and is ignored. Keys, with the flags of the command line in brackets:
     model [-m, --model]          the target, a GGUF file
     model_draft [-md, --model-draft]
     model_alias [-a, --alias]    what answers call the model; the path when not given
     n_ctx [-c, --ctx-size]       tokens of prompt and answer together; 512; 0: the model's own
     n_batch [-b, --batch-size]   most tokens of one evaluation; 512
     n_threads [-t, --threads]    0 or less: the processor's physical cores
     n_threads_batch [-tb, --threads-batch]   prompts take n_threads, too; another number is a
                                              warning
     n_gpu_layers [-ngl, --n-gpu-layers], n_gpu_layers_draft [-ngld, --gpu-layers-draft]
                                  less than 0, or not given: all
     n_draft [--draft]            most tokens to draft for a step; default: as many as pay
     tensor_split [-ts]           shares of the GPUs, an array of numbers ("3,1")
     use_mmap [--no-mmap], use_mlock [--mlock], rope_freq_base, rope_freq_scale
     memory_f16 [--memory-f32]    false: a cache in f32; else the type that keeps batches exact
     lora_adapter [--lora]        a LoRA adapter (GGUF) for the target
     lora_base [--lora-base]      gone from llama.cpp: refused
     main_gpu, numa               no effect any more: a warning
     chat_template                no effect, prompts are taken as they are: a warning
     the request options below    defaults of all requests ("temp" stands for temperature too)
     hostname, public_path, port, read_timeout, write_timeout   accepted and ignored
   Anything else is a warning in the status.

   A target that is ready goes on serving until the new one is loaded. */
RPCSERVER_API int init(const char *cmd);

/* The same without waiting; progress and outcome are in poll_system_status.
   `init_draft_model` true: loads the draft model (`model_draft`, else `model`) for the target that
   is ready or being loaded, while requests run; without a target it waits for one. Where there is
   no target and `cmd` names no model_draft, true is taken for false. */
RPCSERVER_API void init_async(const char *cmd, bool init_draft_model);

/* {"text": string} -> {"success": true, "tokens": [strings], "length": number}. The tokens are
   those of a prompt: BOS in front where the model wants it, names of special tokens read as
   these. */
RPCSERVER_API const char *tokenize(const char *req_json);

/* {"init_success": 0 not (yet) | 1 ready | -1 failed, "model_alias", "model", "loading_progress":
   0.0 to 1.0, "error": text or null, "warnings": [texts], "notes": [what the settings cost],
   "draft": {"state": "absent" | "loading" | "ready" | "failed", "model", "progress", "error",
   "waits_for_target"}, "speculation": {"drafters": [names of the attached ones], "exactness",
   "exactness_coverage", "exactness_reason"}} */
RPCSERVER_API const char *poll_system_status(void);

/* Runs a completion to its end and returns the final response below with "content" whole, and
   "prompt_stats" and "warnings" as async_completion_init has them; errors are {"status": 400,
   "error", "field"}. Not for new code: it blocks. */
RPCSERVER_API const char *get_completion(const char *req_json);

/* Starts a completion -> {"success": true, "id": number, "prompt_stats": {"n_ctx",
   "total_prompt_tokens", "n_past" (tokens that need not be read again), "truncated", "cached",
   "to_eval" (their text, and the rest's)}, "warnings": [texts]}. One runs at a time, others wait
   for their turn, at most 256.

   Options, with their defaults: prompt "" (a string, or an array of strings and token ids),
   n_predict -1 (no limit; 0: only read the prompt), temperature 0.8, top_k 40, top_p 0.95, tfs_z 1
   (else refused), typical_p 1, repeat_last_n 64 (-1: the context), repeat_penalty 1.1,
   presence_penalty 0, frequency_penalty 0, mirostat 0, mirostat_tau 5, mirostat_eta 0.1,
   penalize_nl true, n_keep 0 (-1: the whole prompt), seed -1 (a new one), grammar "", n_probs 0 (20
   at most), ignore_eos false, logit_bias [] ([id, number or false] each), stop [] (strings),
   n_beams 0 (else refused), stream and __debug (no effect), stream_tokens false (true: one update a
   token), speculative false: true, or {"drafters": [names], "rule": "coupled" | "rejection" |
   "block", "width", "branches", "split_p", "draft_p_min", "draft_p_ratio"}.

   Drafters guess the next tokens: draft-model; eagle3 and dflash, where the draft is such a head;
   mtp, with prediction layers in the target's file; suffix, ngram-cache and recycle, which need no
   model. When none is named: the draft (draft-model, eagle3 or dflash) and mtp, where they are
   there, suffix, and ngram-cache where it has files (with the rules rejection and block: the draft
   alone). "a/b" asks b only where a has no guess. A drafter that is not loaded guesses nothing, and
   "reason" in "speculation" says so.

   A prompt that is too long is cut: its first n_keep tokens stay, and of what follows the oldest
   blocks are dropped ("truncated": true). A full context is cut in the same way and the text goes
   on. */
RPCSERVER_API const char *async_completion_init(const char *req_json);

/* What is new -> {"success": true, "completion_updates": [...], "finished": bool,
   "prompt_processing_progress": 0.0 to 1.0}. NULL, "" or {} mean the newest completion, {"id":
   number} a given one. finished becomes true with the last update and stays true, behind
   deinit too, where the updates that were not fetched are gone; it is false before any asynchronous
   completion. The 64 completions that finished last can still be polled.

   Updates: {"content": text, "stop": false} each, one for what a step gave, with
   "completion_probabilities" when n_probs > 0; the last one is the final response, after a cancel
   too: {"content": "", "stop": true, "model", "tokens_predicted", "tokens_evaluated",
   "generation_settings", "prompt", "truncated", "stopped_eos", "stopped_word", "stopped_limit",
   "stopped_cancelled", "stopping_word", "tokens_cached", "timings", "speculation", "kernels",
   "kernels_reason", "status": 200, "completion_probabilities"}; a completion that failed has status 500 and "error". */
RPCSERVER_API const char *async_completion_poll(const char *cmd_json);

/* Ends a completion, chosen as for async_completion_poll, with what it has, within one step
   -> {"success": true}, also when none runs. */
RPCSERVER_API const char *async_completion_cancel(const char *req_json);

/* Ends what is running and loading, waits for other threads' calls, and frees everything but the
   strings that were returned. Is called automatically when the process exits. */
RPCSERVER_API void deinit(void);

/* Frees a string of this library; NULL has no effect. The same as free(), for callers with
   another heap. */
RPCSERVER_API void rpc_free(const char *text);

#ifdef __cplusplus
}
#endif

#endif /* RPCSERVER_H_ */
