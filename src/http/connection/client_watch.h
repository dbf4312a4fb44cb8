// ClientWatch: whether the client of a request that is being answered is still there.
//
// A client that closes its connection and one that only ends its own side of it (`nc -N`, some
// proxies), and waits for the answer, look alike: a FIN comes from both. They differ in what
// becomes of the next bytes: the system of one that has closed answers them with a reset. A
// stream's bytes show it by themselves. Before an answer, bytes are sent that mean nothing, once:
// the interim response "100 Continue", which every client of HTTP/1.1 must pass over (RFC
// 9110, 15.2).
//
//   nothing has ended              there
//   a FIN, HTTP/1.1, no answer yet  100 Continue is sent; there until a reset comes
//   a FIN, the answer has begun     there until a reset comes, or a write fails
//   a FIN, HTTP/1.0, no answer yet  gone: there are no interim responses, and its usual client, a
//                                   proxy, closes when its own client does
//   a reset, or both sides ended    gone
//
// The reasons, and what others do: docs/decisions.md. Tested by half_closed_test.cc.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include <cpp-httplib/httplib.h>

namespace outrider::http {

// One thread, the one that answers.
class ClientWatch {
 public:
  // `socket` is not owned and stays open. `takes_interim`: the client speaks HTTP/1.1.
  ClientWatch(socket_t socket, bool takes_interim)
      : socket_(socket), takes_interim_(takes_interim) {}

  // Whether nothing more will come from the client; it may have gone or not.
  bool has_ended() const;

  // Whether it has gone, as far as that is known by now.
  bool is_gone();

  // From here on only the answer's own bytes may be written.
  void begin_answer() { answering_ = true; }

  // Nothing of an answer that is still to come gets out.
  void cut_off() const;

 private:
  void ask();

  const socket_t socket_;
  const bool takes_interim_;
  bool answering_ = false;
  bool asked_ = false;
};

// Whose request it is that is answered: cpp-httplib's handlers are given a request without its
// connection. Any thread.
class ClientWatches {
 public:
  // The watch of one request, which is found as long as this lives.
  class Entry {
   public:
    explicit Entry(ClientWatches& all) : all_(all) {}
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    void begin(const httplib::Request& request, std::shared_ptr<ClientWatch> watch);

   private:
    ClientWatches& all_;
    const httplib::Request* request_ = nullptr;
  };

  // Null for one that was refused before its head was whole.
  std::shared_ptr<ClientWatch> find(const httplib::Request& request) const;

 private:
  mutable std::mutex mutex_;
  std::map<const httplib::Request*, std::shared_ptr<ClientWatch>> watches_;
};

}  // namespace outrider::http
