// What makes a worker free again whose client's machine is gone: the kernel's own questions.
#pragma once

#include <cstdint>

namespace outrider::llama {

// A client that says nothing is asked after a minute whether it is there, then every 15 seconds,
// and has four questions for an answer. Its kernel answers, also for a process that is stopped.
constexpr int kClientIdleSeconds = 60;
constexpr int kClientQuestionSeconds = 15;
constexpr int kClientQuestions = 4;

// From now on the kernel asks the clients of the TCP port that this process listens on: those to
// come, and those that are connected. ggml's server, which owns these sockets, asks nobody, and
// waits for ever for the next command of a client that went without a word. No effect but on Linux.
// Any thread.
void ask_for_clients(std::uint16_t port);

}  // namespace outrider::llama
