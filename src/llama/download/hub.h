// Hub: how the model hub is reached, and what its refusals mean.
//
// llama-common's downloader says of most failures only that there are no files, and waits for five
// minutes where packets are dropped. So one small request goes first, with time limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "llama/download/hub_name.h"

namespace outrider::llama {

struct Hub {
  std::string endpoint;  // of HF_ENDPOINT (MODEL_ENDPOINT), else llama.cpp's; ends with '/'
  std::string host;      // of it, for messages
  std::string token;     // HF_TOKEN; empty: none

  // From the environment. Errors: kInvalidArgument (no URL); kUnsupported (HTTPS without OpenSSL).
  static Result<Hub> find();

  // Ok when it shows `name`. Waits 5 s for a connection and 15 s for an answer, at most (looking up
  // the host's address may take longer). Errors: kNotFound (not there, or not for this token);
  // kInternal (no connection, a failure there), each with what to do.
  Status ask(const HubName& name) const;

  // The same for the list of its files, asked for as llama-common does: without a token that has
  // another form than the hub's. Ok where nothing is found that speaks against a list.
  Status ask_list(const HubName& name) const;

  // The HTTP status of a GET of `url` from byte `from` on, with the same time limits; none: no
  // answer. Nothing of a body is read.
  std::optional<int> status_of(const std::string& url, std::uint64_t from) const;

  // What a message about a hub that cannot be reached says of a proxy that the environment names:
  // llama-common's client uses none. Begins with ';'; empty without one.
  std::string proxy_hint() const;

  // An HTTP status of 400 and more as an error.
  Status refusal(int status, const HubName& name) const;
};

}  // namespace outrider::llama
