// LlamaHub: a model hub on loopback, as llama-common's downloader asks it, which refuses, breaks
// off, lies and stalls on command.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace outrider::testing {

struct HubFile {
  std::string bytes;
  std::string sha256;              // as the hub gives it; empty: it gives none
  int status = 200;                // of the file itself
  int get_status = 200;            // the same, but not where asked for the head alone
  std::int64_t breaks_after = -1;  // a connection ends after that many bytes of it; negative: not
  int breaks = 0;                  // how often it does
  std::int64_t announces = -1;     // bytes, where asked for the head alone; negative: what it has
  bool stalls = false;             // nothing more comes after `breaks_after`, until let_go()
  bool ignores_ranges = false;     // all of it comes, with a 200, where its rest is asked for
  bool is_slow = false;            // 100 ms before every 4 KiB
};

// Any thread. Ends its server when destroyed.
class LlamaHub {
 public:
  LlamaHub();
  ~LlamaHub();
  LlamaHub(const LlamaHub&) = delete;
  LlamaHub& operator=(const LlamaHub&) = delete;

  std::string endpoint() const;  // "http://127.0.0.1:PORT"

  void put(const std::string& repo, const std::string& path, HubFile file);
  // Everything about the repository is answered with it; 0: as it is.
  void refuse(const std::string& repo, int status);
  // The last commit is this digit 40 times; "c" until then.
  void commit(const std::string& repo, char digit);
  // Only who brings this token may read; empty: everybody.
  void want_token(const std::string& token);

  // What stalls goes on.
  void let_go();

  int requests() const { return requests_.load(); }               // of any kind
  std::int64_t bytes_sent() const { return bytes_sent_.load(); }  // of files
  std::vector<std::string> ranges() const;                        // that were asked for

 private:
  struct Server;
  bool goes_on(bool wait);

  std::unique_ptr<Server> server_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, std::map<std::string, HubFile>> repos_;
  std::map<std::string, int> refused_;
  std::map<std::string, char> commits_;
  std::string token_;
  std::vector<std::string> ranges_;
  bool released_ = false;
  bool ending_ = false;
  std::condition_variable goes_on_;  // one of the two was set
  std::atomic<int> requests_{0};
  std::atomic<std::int64_t> bytes_sent_{0};
};

}  // namespace outrider::testing
