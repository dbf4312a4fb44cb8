// The page at "/" and its files.
#pragma once

#include <optional>

#include "http/exchange/exchange.h"

namespace outrider::http {

// The file that a GET asks for, with a Content-Security-Policy under which the page can load and
// ask nothing but this server; nothing: there is no such file.
std::optional<HttpReply> page_reply(const HttpRequest& request);

}  // namespace outrider::http
