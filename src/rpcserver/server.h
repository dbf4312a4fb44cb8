// Server: the seed's API over any way of opening models. The C functions are this with LlamaLoader.
//
//   nothing --init--> session --deinit--> nothing --init--> another session ...
//
// A call enters the current session and leaves it. deinit hides the session from later calls, ends
// what it does, waits until the calls inside have left, and frees it; it also waits until a session
// that another thread's deinit has hidden is freed. So every function may be called from any thread
// at any time, and none uses a session that was freed.
//
// Answers are compact JSON texts. Functions may throw std::bad_alloc, which the caller catches.
//
// Tested by session_test.cc, session_load_test.cc and server_threads_test.cc.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "json/json.h"
#include "rpcserver/session.h"
#include "serve/loader.h"

namespace outrider::rpcserver {

class Server {
 public:
  explicit Server(ModelLoader& loader) : loader_(loader) {}  // must outlive this
  ~Server() { deinit(); }                                    // no call may be inside
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // As include/rpcserver.h has them; arguments may be null.
  int init(const char* cmd);
  void init_async(const char* cmd, bool init_draft_model);
  // Nothing can run here: what the status says from now on. Returns what init does.
  int refuse_init(const Status& why);
  std::string tokenize(const char* request);
  std::string poll_system_status();
  std::string get_completion(const char* request);
  std::string async_completion_init(const char* request);
  std::string async_completion_poll(const char* which);
  std::string async_completion_cancel(const char* which);
  void deinit();

 private:
  struct Entry {
    std::unique_ptr<Session> session;
    std::shared_mutex inside;  // shared by the calls inside
  };

  // A call inside a session, which is not freed meanwhile.
  struct Call {
    Session* session = nullptr;  // null: there is none
    std::shared_lock<std::shared_mutex> inside;
  };

  // What the session says to `text`; `without` where there is none.
  template <typename Question>
  std::string ask(Question question, const char* text, json::Json without);
  Call enter(bool make);

  ModelLoader& loader_;
  CompletionsSoFar so_far_;
  std::mutex ending_;             // held by deinit(): one session ends at a time
  std::mutex mutex_;              // guards what follows
  std::unique_ptr<Entry> entry_;  // null: before init, or after deinit
  std::string init_error_;        // why the last init made no session, or empty
};

}  // namespace outrider::rpcserver
