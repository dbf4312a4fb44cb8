// Files in messages for clients: by name, since where they lie on this machine is nobody's
// business.
//
// Tested by file_names_test.cc.
#pragma once

#include <string>
#include <string_view>

namespace outrider::http {

// `text` with the names of files for their absolute paths in quotes: "'/home/ann/m.gguf' is
// damaged" becomes "'m.gguf' is damaged". What the operator named by a relative path stays.
std::string without_folders(std::string_view text);

}  // namespace outrider::http
