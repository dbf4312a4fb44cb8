// The models in a folder, and a draft model that lies beside its target.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/files/gguf_family.h"

namespace outrider::tools {

// What a model is called after its file: without .gguf and the number of a split one. At most 128
// bytes of it, with what is no UTF-8 and control characters replaced, so that every file has one.
std::string model_name(const std::string& path);

// What files say of themselves, each read once: of a folder every file is compared with every
// other. For one start of a command; a file that is written anew meanwhile is as it was.
class ModelFamilies {
 public:
  using Read = std::function<Result<llama::GgufFamily>(const std::string& path)>;

  // `stopped`: whether a signal came, asked between files; empty: none is watched.
  explicit ModelFamilies(std::function<bool()> stopped = {}, Read read = llama::read_gguf_family);

  // As read_gguf_family() says. Valid until this is destroyed.
  const Result<llama::GgufFamily>& of(const std::string& path);
  bool stopped() const { return stopped_ && stopped_(); }

 private:
  std::function<bool()> stopped_;
  Read read_;
  std::map<std::string, Result<llama::GgufFamily>> known_;
};

struct FolderModel {
  std::string name;  // model_name(), or that behind the folder's
  std::string path;  // of the first of its files
};

struct ModelFolder {
  std::vector<FolderModel> models;    // by name
  std::vector<std::string> left_out;  // why a file is none, a line each
};

// Every *.gguf in `folder` and below it, behind links to folders as well, each of which is looked
// into once. A model of several files counts once. Left out without a
// word: what by its name is a part of a model (mmproj, MTP and other draft heads, imatrix);
// with a line: what cannot be read or writes no text. Of two with one name, the further ones get
// the folder before theirs ("b/model"). Reads the headers. Errors: kNotFound, kInvalidArgument
// (not a folder, or not readable), kCancelled where it was stopped.
Result<ModelFolder> read_model_folder(const std::string& folder, ModelFamilies& families);

// The file beside `target`, in its folder, that could be its draft model
// (llama/files/gguf_family.h): the one with the fewest parameters, of these the smallest. Reads the
// headers of 64 files at most, those that `families` does not know. Nothing where there is none,
// `target` cannot be read, or it was stopped.
std::optional<std::string> find_draft_beside(const std::string& target, ModelFamilies& families);

// "'small.gguf' beside it could guess ahead for 'large.gguf': -d folder/small.gguf", which can be
// pasted into a shell.
std::string draft_offer(const std::string& target, const std::string& draft);

}  // namespace outrider::tools
