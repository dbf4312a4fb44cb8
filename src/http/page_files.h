// The page's files (src/http/page), as they are in the binary.
#pragma once

#include <span>
#include <string_view>

namespace outrider::http {

// Static storage, any thread. Made by outrider_embed (cmake/embed_files.cmake).
struct PageFile {
  std::string_view path;  // below the page's folder, without a slash in front: "index.html"
  std::string_view content_type;
  std::string_view bytes;
};

// All of them, ascending by path. Static storage, any thread.
std::span<const PageFile> page_files();

}  // namespace outrider::http
