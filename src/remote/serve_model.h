// The child's side: serves a LanguageModel to the process that started it.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "model/language_model.h"
#include "model/model_options.h"
#include "remote/file_descriptor.h"
#include "remote/protocol.h"

namespace outrider {

struct HostedModel {
  std::unique_ptr<LanguageModel> model;
  OpenReport report;  // but for the capabilities, which are the model's
};

// Opens what the request names. `probing` gets the progress of the probe, 0 to 1, if there is one.
using OpenHosted =
    std::function<Result<HostedModel>(const OpenRequest& request, const LoadHooks& hooks,
                                      const std::function<void(double)>& probing)>;

// Serves the parent at the other end of `channel` until it says goodbye or its end closes; then the
// model is gone. Any descriptor may be -1, which is an error. Uses nothing of the process: a test
// may run it on a thread. Errors: kInternal when the parent is gone or does not keep to the
// protocol.
Status serve_model(FileDescriptor channel, FileDescriptor memory, const OpenHosted& open);

}  // namespace outrider
