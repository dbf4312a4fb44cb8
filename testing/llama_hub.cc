#include "testing/llama_hub.h"

#include <cpp-httplib/httplib.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace outrider::testing {
namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string tree_of(const std::map<std::string, HubFile>& files) {
  std::string text;
  for (const auto& [path, file] : files) {
    text += text.empty() ? "" : ",";
    text += R"({"type":"file","path":)" + quoted(path) +
            ",\"size\":" + std::to_string(file.bytes.size()) +
            ",\"oid\":" + quoted(std::string(40, 'd'));
    if (!file.sha256.empty()) text += R"(,"lfs":{"oid":)" + quoted(file.sha256) + "}";
    text += "}";
  }
  return "[" + text + "]";
}

}  // namespace

struct LlamaHub::Server {
  httplib::Server http;
  int port = 0;
  std::thread thread;

  static void send_file(LlamaHub& hub, const httplib::Request& q, httplib::Response& a);
};

void LlamaHub::Server::send_file(LlamaHub& hub, const httplib::Request& q, httplib::Response& a) {
  const std::lock_guard<std::mutex> lock(hub.mutex_);
  HubFile& file = hub.repos_[q.matches[1].str()][q.matches[2].str()];
  a.set_header("Accept-Ranges", "bytes");
  if (file.status != 200) {
    a.status = file.status;
    return;
  }
  const std::string bytes = file.bytes;
  if (q.method == "HEAD") {
    const std::size_t n =
        file.announces >= 0 ? static_cast<std::size_t>(file.announces) : bytes.size();
    a.set_content_provider(n, "application/octet-stream",
                           [](std::size_t, std::size_t, httplib::DataSink&) { return false; });
    return;
  }
  if (file.get_status != 200) {
    a.status = file.get_status;
    return;
  }
  if (q.has_header("Range")) hub.ranges_.push_back(q.get_header_value("Range"));
  if (file.ignores_ranges) a.status = 200;
  const bool breaks = file.breaks_after >= 0 && (file.breaks > 0 || file.stalls);
  if (breaks && !file.stalls) --file.breaks;
  const std::size_t end = breaks ? static_cast<std::size_t>(file.breaks_after) : bytes.size();
  const auto send = [&hub, bytes, end, stalls = file.stalls, is_slow = file.is_slow](
                        std::size_t at, std::size_t n, httplib::DataSink& sink) {
    if (is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::size_t stop = stalls && hub.goes_on(at >= end) ? bytes.size() : end;
    if (at >= stop) return false;
    const std::size_t now = std::min({n, stop - at, std::size_t{4096}});
    hub.bytes_sent_ += static_cast<std::int64_t>(now);
    return sink.write(bytes.data() + at, now);
  };
  a.set_content_provider(bytes.size(), "application/octet-stream", send);
}

LlamaHub::LlamaHub() : server_(std::make_unique<Server>()) {
  httplib::Server& http = server_->http;
  http.set_pre_routing_handler([this](const httplib::Request& q, httplib::Response& a) {
    ++requests_;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!token_.empty() && q.get_header_value("Authorization") != "Bearer " + token_) {
      a.status = 401;
      a.set_content(R"({"error":"Invalid username or password."})", "application/json");
      return httplib::Server::HandlerResponse::Handled;
    }
    for (const auto& [repo, status] : refused_) {
      if (status == 0 || q.path.find(repo) == std::string::npos) continue;
      a.status = status;
      return httplib::Server::HandlerResponse::Handled;
    }
    return httplib::Server::HandlerResponse::Unhandled;
  });
  http.Get(R"(/api/models/(\w[^/]*/[^/]+)/(refs|tree/.*))", [this](const httplib::Request& q,
                                                                   httplib::Response& a) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto repo = repos_.find(q.matches[1].str());
    if (repo == repos_.end()) {
      a.status = 404;
    } else if (q.matches[2].str() == "refs") {
      const auto commit = commits_.find(repo->first);
      const std::string name(40, commit == commits_.end() ? 'c' : commit->second);
      a.set_content(R"({"branches":[{"name":"main","targetCommit":)" + quoted(name) + "}]}",
                    "application/json");
    } else {
      a.set_content(tree_of(repo->second), "application/json");
    }
  });
  // As hubs do: the file itself is elsewhere.
  http.Get(R"(/([^/]+/[^/]+)/resolve/[0-9a-f]+/(.*))",
           [](const httplib::Request& q, httplib::Response& a) {
             a.set_redirect("/cdn/" + q.matches[1].str() + "/" + q.matches[2].str());
           });
  http.Get(R"(/cdn/([^/]+/[^/]+)/(.*))", [this](const httplib::Request& q, httplib::Response& a) {
    Server::send_file(*this, q, a);
  });
  server_->port = http.bind_to_any_port("127.0.0.1");
  if (server_->port <= 0) std::abort();
  server_->thread = std::thread([this] { server_->http.listen_after_bind(); });
  http.wait_until_ready();
}

// Whether let_go() was called; waits for that, or for the end, where `wait`.
bool LlamaHub::goes_on(bool wait) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (wait) goes_on_.wait(lock, [this] { return released_ || ending_; });
  return released_;
}

void LlamaHub::let_go() {
  const std::lock_guard<std::mutex> lock(mutex_);
  released_ = true;
  goes_on_.notify_all();
}

LlamaHub::~LlamaHub() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    goes_on_.notify_all();
  }
  server_->http.stop();
  server_->thread.join();
}

std::string LlamaHub::endpoint() const {
  return "http://127.0.0.1:" + std::to_string(server_->port);
}

void LlamaHub::put(const std::string& repo, const std::string& path, HubFile file) {
  const std::lock_guard<std::mutex> lock(mutex_);
  repos_[repo][path] = std::move(file);
}

void LlamaHub::refuse(const std::string& repo, int status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  refused_[repo] = status;
}

void LlamaHub::commit(const std::string& repo, char digit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  commits_[repo] = digit;
}

void LlamaHub::want_token(const std::string& token) {
  const std::lock_guard<std::mutex> lock(mutex_);
  token_ = token;
}

std::vector<std::string> LlamaHub::ranges() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ranges_;
}

}  // namespace outrider::testing
