// outrider serve: the models over HTTP, for clients of OpenAI's API and others.
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/llama_loader.h"
#include "base/on_exit.h"
#include "catalog/catalog.h"
#include "http/listener.h"
#include "http/metrics/access_log.h"
#include "http/server.h"
#include "machine/machine.h"
#include "machine/machine_limits.h"
#include "tools/catalog_options.h"
#include "tools/command.h"
#include "tools/fetch_models.h"
#include "tools/model_news.h"
#include "tools/options/config.h"
#include "tools/options/field_options.h"
#include "tools/options/model_options.h"
#include "tools/options/options.h"
#include "tools/options/request_options.h"
#include "tools/options/usage.h"
#include "tools/report.h"
#include "tools/terminal.h"

namespace outrider::tools {
namespace {

constexpr const char* kServeDetails =
    "Clients of OpenAI's API use it with the base URL http://127.0.0.1:8080/v1 and any key; "
    "/openapi.json lists all endpoints. Options of sampling and speculation are what a request has "
    "that does not say otherwise.\n"
    "Ctrl-C lets what runs end (--drain), a second one ends at once.";

constexpr std::int64_t kLookMs = 100;                // between two looks at how far a load is
constexpr std::chrono::milliseconds kNewsTime{250};  // between two looks for what is to be said

// A listener's thread, which a signal ends, and which has ended before what it uses goes: whatever
// is thrown meanwhile.
class Listening {
 public:
  Listening(http::Listener& listener, SignalWatch& signals, Status& result)
      : listener_(listener), signals_(signals) {
    signals_.on_signal([&listener] { listener.stop(); });
    try {
      thread_ = std::thread([this, &result] { run(result); });
    } catch (...) {
      signals_.on_signal({});
      throw;
    }
  }
  ~Listening() {
    if (thread_.joinable()) listener_.stop();
    wait();
    signals_.on_signal({});
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  // False when the time ran out first.
  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return ended_.wait_for(lock, time, [this] { return has_ended_; });
  }

 private:
  void run(Status& result) {
    result = listener_.run();
    const std::lock_guard<std::mutex> lock(mutex_);
    has_ended_ = true;
    ended_.notify_all();
  }

  http::Listener& listener_;
  SignalWatch& signals_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread thread_;
};

// Clients are told of their own requests only, and nobody may be looking at system.status.
void tell_news(ModelNews& news, const Catalog& catalog) {
  try {
    for (const std::string& line : news.of(catalog.status())) print_warning(line);
  } catch (const std::exception&) {  // no memory: at the next look
  }
}

class ServeCommand : public Command {
 public:
  ServeCommand() : Command("serve", "serve OpenAI's API and a page over HTTP", kServeDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  OptionFacts facts() const override { return {.elsewhere = options_of_tables(catalog_)}; }
  Status prepare() override { return read_constraint(request_); }
  ModelArguments* models() override { return &model_; }
  bool downloads_models() const override { return true; }
  Result<int> run() override;

 private:
  // The catalog, with what is to be said of its models told.
  Result<std::unique_ptr<Catalog>> make_catalog(ModelLoader& loader, Terminal& terminal);
  // Until the default model is open, with its draft and its files, or cannot be; tells how far it
  // is. Requests are answered meanwhile, plainly while a draft is coming. Ok when a signal came
  // first, or it was unloaded or found no room. An error also where its draft or a file cannot be
  // used, and where it has no drafter of its own and the options name that.
  Status wait_until_open(Catalog& catalog, Terminal& terminal) const;
  std::vector<CostPoint> floor_of(const Target& target) const;
  void warn_of_few_connections(const http::Listener& listener) const;
  // Listens and answers until a signal comes.
  Status serve(Catalog& catalog, Terminal& terminal);

  CLI::App* app_ = nullptr;
  ModelArguments model_;
  CatalogArguments catalog_;
  RequestArguments request_;
  RuntimeOptions runtime_;
  http::ServerOptions server_;
  std::vector<std::string> aliases_;
};

void ServeCommand::add_options(CLI::App& app) {
  app_ = &app;
  OptionGroup server(app, "Server");
  add_fields(server, http::server_fields(), server_);
  server.add_texts(
      "--alias", aliases_, "NAME,...",
      "a name of the default model that clients may ask for, beside its file's; several with "
      "commas between them, or given several times");
  add_fields(server, runtime_fields(), runtime_, {"retention_ms"});
  add_fields(server, chat_fields(), request_.request.chat, {"parallel_tool_calls"});
  add_model_options(app, model_);
  add_catalog_options(app, catalog_);
  add_exact_option(app, "Model", model_);
  add_request_options(app, request_);
}

void ServeCommand::check() {
  read_config_models(*app_, model_, catalog_);
  if (has_target(model_) || (!catalog_.model_dir && catalog_.tables.empty())) require_model(model_);
  check_request(request_, model_);
  require_ok(validate(runtime_));
  require_ok(http::read_api_keys(server_));
  require_ok(http::validate(server_));
  require_ok(http::check_exposure(server_));
}

Result<std::unique_ptr<Catalog>> ServeCommand::make_catalog(ModelLoader& loader,
                                                            Terminal& terminal) {
  OUTRIDER_ASSIGN_OR_RETURN(CatalogModels models,
                            catalog_models(model_, request_.files, catalog_, terminal));
  for (const std::string& note : models.notes) print_note(note);
  for (CatalogEntry& entry : models.entries) {
    entry.target.widest = opened_width(request_.request);
  }
  for (const std::string& names : aliases_) add_aliases(models.entries.front(), names);
  CatalogOptions options = catalog_options(catalog_);
  options.runtime = runtime_;
  options.runtime.not_kept = print_not_kept;
  options.runtime.end_unpolled = true;
  return Catalog::create(std::move(models.entries), std::move(options), loader);
}

Status ServeCommand::wait_until_open(Catalog& catalog, Terminal& terminal) const {
  CatalogStatus model = catalog.status().front();
  // One that is absent behind a preload() was there, and a client has unloaded it between two
  // looks, or clients' other models have all room. It is opened when it is asked for again.
  const auto is_coming = [&model] {
    return model.state == ModelState::kLoading ||
           (model.state == ModelState::kReady && !model.complete);
  };
  while (is_coming() && !terminal.signals.raised()) {
    const bool is_open = model.state == ModelState::kReady;
    terminal.progress.update("loading " + model.name + (is_open ? "'s drafters" : ""),
                             model.progress);
    std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
    model = catalog.status().front();
  }
  terminal.progress.clear();
  if (terminal.signals.raised()) return Status();
  if (model.state == ModelState::kFailed) return model.error;
  OUTRIDER_RETURN_IF_ERROR(drafting_error(model));
  const std::shared_ptr<Runtime> open = catalog.find_open("");
  const std::shared_ptr<const Target> target = open ? open->target() : nullptr;
  if (target == nullptr) return Status();
  const std::string warning = no_template_warning(*target);
  if (!warning.empty()) print_warning(warning);
  return check_lone_head(request_.request, *target);
}

// The least that steps of a target can take here. Nothing where it cannot be told.
std::vector<CostPoint> ServeCommand::floor_of(const Target& target) const {
  ModelOptions options = model_.target;
  options.path = target.info().path;
  std::vector<std::int32_t> widths;
  for (const CostPoint& point : target.costs().points) widths.push_back(point.width);
  std::vector<CostPoint> points;
  const Result<MachineFloor> measured = measure_floor(options, used_threads(options), widths);
  if (!measured.ok()) return points;
  for (const Floor& floor : measured->floor) {
    points.push_back({.width = floor.width, .ms = floor.ms()});
  }
  return points;
}

void ServeCommand::warn_of_few_connections(const http::Listener& listener) const {
  if (listener.connections() >= static_cast<std::size_t>(server_.max_connections)) return;
  print_warning("this process may have too few files for --max-connections " +
                std::to_string(server_.max_connections) + ": it takes " +
                std::to_string(listener.connections()) +
                " connections at once; a higher hard limit (ulimit -Hn, LimitNOFILE= of systemd, "
                "docker run --ulimit nofile=) allows more");
}

Status ServeCommand::serve(Catalog& catalog, Terminal& terminal) {
  http::Server server(server_, catalog);
  server.state().floors().measure_with([this](const Target& target) { return floor_of(target); });
  std::unique_ptr<http::LineFile> log;
  // However this ends: SIGHUP must not find a log that is gone.
  const OnExit unwatch([&terminal] { terminal.signals.on_other({}); });
  if (!server_.access_log.empty()) {
    Result<std::unique_ptr<http::LineFile>> opened =
        http::LineFile::open(server_.access_log, server_.access_log_mib << 20,
                             [](const Status& why) { print_warning(why.message()); });
    if (!opened.ok()) return opened.status();
    log = std::move(*opened);
    server.log_to(log.get());
    terminal.signals.on_other([&log](int) {
      const Status reopened = log->reopen();
      if (!reopened.ok()) print_warning(reopened.message());
    });
  }
  Result<std::unique_ptr<http::Listener>> listener = http::Listener::create(server);
  if (!listener.ok()) return listener.status();
  warn_of_few_connections(**listener);
  const std::string exposed = http::exposure_warning(server_);
  if (!exposed.empty()) print_warning(exposed);
  Status listened;
  Listening listening(**listener, terminal.signals, listened);
  const bool is_v6 = server_.host.find(':') != std::string::npos;
  const std::string host = is_v6 ? "[" + server_.host + "]" : server_.host;
  print_note("listening on http://" + host + ":" + std::to_string((*listener)->port()));
  Status opened = catalog.preload("");
  if (opened.ok()) opened = wait_until_open(catalog, terminal);
  if (!opened.ok()) (*listener)->stop();
  ModelNews news;
  if (opened.ok()) tell_news(news, catalog);
  if (opened.ok() && !terminal.signals.raised()) print_note("ready");
  while (!listening.wait_for(kNewsTime)) {
    if (opened.ok()) tell_news(news, catalog);
  }
  listening.wait();
  // What a signal ended did not fail.
  return opened.ok() || terminal.signals.raised() ? listened : opened;
}

Result<int> ServeCommand::run() {
  server_.defaults = request_.request;
  if (is_service_link("--port")) {
    print_note("OUTRIDER_PORT is that of a service of Kubernetes, and no --port; ignored");
  }
  // With a log SIGHUP does not end it as SIGTERM does, but means that the log was moved away.
  const std::vector<int> hangup(server_.access_log.empty() ? 0 : 1, SIGHUP);
  Terminal terminal({}, hangup);  // first: the catalog's threads must not take the signals
  const Status downloaded = download_models(model_, terminal);
  if (terminal.signals.raised()) {
    if (!downloaded.ok()) print_note(downloaded.message());
    return kDone;  // what a signal ended did not fail
  }
  OUTRIDER_RETURN_IF_ERROR(downloaded);
  name_draft(model_);
  LlamaLoader loader;
  const Result<std::unique_ptr<Catalog>> made = make_catalog(loader, terminal);
  if (terminal.signals.raised()) return kDone;
  if (!made.ok()) return made.status();
  Catalog& catalog = **made;
  // Whoever serves one model means it, however clients call it. One that is alone in a folder or
  // in a table may get company.
  server_.any_model_name = model_.model && catalog.status().size() == 1;
  OUTRIDER_RETURN_IF_ERROR(serve(catalog, terminal));
  return kDone;
}

}  // namespace

std::unique_ptr<Command> make_serve_command() { return std::make_unique<ServeCommand>(); }

}  // namespace outrider::tools
