// Downloads a model of the hub into the cache that it shares with llama.cpp and the hub's own
// tools: by llama-common's downloader, which resumes a part that is there. What this adds:
//
//   - a failure says what it is and what to do, within seconds where nobody answers (hub.h);
//   - a model that is in the cache works without the hub, with a note; so does an earlier one of
//     the same name where the newest was not downloaded to its end;
//   - what came is checked before it is used: its length, its SHA-256 where the hub gives one (and
//     this build has OpenSSL), its GGUF header. What is wrong is removed, what is only too short is
//     kept as a part. llama-common checks nothing but that the connection did not break;
//   - an interruption keeps the part, which llama-common would remove, also while nothing arrives;
//   - of several that want one file at once, in any processes, one downloads it and the others
//     wait, where llama-common lets all append to the same part;
//   - a part as long as the file or longer, or of a server that gives no rest, which llama-common
//     would ask to be continued for ever, is mended or removed.
//
// Tested by hub_download_test.cc and hub_failures_test.cc (a hub on loopback).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/download/hub_name.h"

namespace outrider::llama {

struct DownloadHooks {
  // Every 100 ms while something is done: what ("downloading x.gguf"), and how much of it, 0 to 1.
  // On the caller's thread; may be empty.
  std::function<void(const std::string& what, double fraction)> progress;
  const std::atomic<bool>* cancel = nullptr;  // raised: ends within 2 s, with kCancelled
  // Without a byte for so long: given up. At least 1 s; to the first answer it is 25 s.
  std::chrono::seconds give_up_after{90};
};

struct DownloadedModel {
  std::string path;                // of the file, or of the first of several
  std::vector<std::string> notes;  // for the user, a sentence each
};

// The files of a model; those that are in the cache are not fetched again. With HF_HUB_OFFLINE=1
// (or on, true, yes) the hub is not asked. Takes minutes. Any thread; several at once, of any
// processes: who wants a file that is being downloaded waits for it.
// Errors: kNotFound (no such model, or no file of that quant; the message lists what there is),
// kUnsupported (HTTPS without OpenSSL), kDataLoss (what came is damaged), kInternal (no network, no
// room on the disk), kCancelled; each says what to do.
Result<DownloadedModel> download_model(const HubName& name, const DownloadHooks& hooks);

}  // namespace outrider::llama
