// Channel: messages over a pair of sockets between a process and its child.
//
//      | magic u32 | kind u32 | length u32 | call u32 | body |
//
// The length is checked before anything is reserved for it. `call` is a number that an answer has
// of what it answers. (Up to version 3 of the protocol the length had both places, so that a
// greeting of either can be read by the other.) Nothing here raises SIGPIPE.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "remote/file_descriptor.h"

namespace outrider {

struct Message {
  std::uint32_t kind = 0;
  std::uint32_t call = 0;
  std::string body;
};

class Channel {
 public:
  static constexpr std::uint64_t kMaxBody = 64 << 20;  // bytes

  // Two ends, both closed on exec. Errors: kResourceExhausted.
  static Result<std::pair<FileDescriptor, FileDescriptor>> make_pair();

  explicit Channel(FileDescriptor socket);

  // Sends one message whole; several threads may. Errors: kInvalidArgument when the body is longer
  // than kMaxBody; kInternal when the other end is closed.
  Status send(std::uint32_t kind, std::string_view body, std::uint32_t call = 0);

  // Waits for a message; one thread at a time. While there is none, `wait` is called every
  // `interval_ms`, and ends the waiting with false; an empty one waits for ever. The message is
  // half read then, so the channel is of no more use. May throw std::bad_alloc; the next call
  // receives the same message.
  // Errors: kCancelled by `wait`; kDataLoss for what is no message; kInternal when the other end is
  // closed.
  Result<Message> receive(const std::function<bool()>& wait, int interval_ms);

  int socket() const { return socket_.get(); }

 private:
  Status read(char* to, std::size_t n, const std::function<bool()>& wait, int interval_ms);

  struct Header {
    std::uint32_t magic = 0;
    std::uint32_t kind = 0;
    std::uint32_t length = 0;
    std::uint32_t call = 0;
  };

  FileDescriptor socket_;
  std::mutex sending_;
  std::optional<Header> begun_;  // of a message whose body has not been received
};

}  // namespace outrider
