// Messages that are cut, wrong or from another world: an error each, on both sides.
#include "remote/protocol.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "remote/channel.h"
#include "remote/remote_model.h"
#include "remote/serve_model.h"
#include "remote/shared_memory.h"
#include "testing/fake_model.h"

namespace outrider {
namespace {

TEST(Wire, WhatIsCutAnywhereIsNoticed) {
  OpenRequest request;
  request.model.path = "a path";
  request.model.workers = {"one", "two"};
  request.cache_folder = "a folder";
  WireWriter writer;
  put(writer, request);
  const std::string whole = writer.bytes();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    WireReader reader(std::string_view(whole).substr(0, n));
    static_cast<void>(read_open_request(reader));
    EXPECT_FALSE(reader.finished()) << n;
  }
  WireReader reader(whole);
  EXPECT_EQ(read_open_request(reader).cache_folder, "a folder");
  EXPECT_TRUE(reader.finished());
  const std::string more = whole + "x";
  WireReader longer(more);
  static_cast<void>(read_open_request(longer));
  EXPECT_FALSE(longer.finished());
}

// Another value than the one that is there.
void change(std::string& value) { value += "x"; }
void change(bool& value) { value = !value; }
void change(std::int32_t& value) { value += 1; }
void change(float& value) { value += 0.5f; }
void change(std::vector<std::string>& value) { value.push_back("x"); }
void change(std::vector<float>& value) { value.push_back(0.5f); }
template <typename E>
requires std::is_enum_v<E>
void change(E& value) { value = value == E{} ? static_cast<E>(1) : E{}; }

// Every member, whose number the compiler checks: a new one is to be added here.
template <typename Visit>
void each_member(ModelOptions& options, Visit visit) {
  auto& [path, n_ctx, n_sequences, n_batch, n_threads, n_gpu_layers, cache_type_k, cache_type_v,
         flash_attention, exact, kernels, tensor_split, lora, use_mmap, use_mlock, rope_freq_base,
         rope_freq_scale, workers, isolate, worker_timeout_s, widest, head, mtp] = options;
  const auto all = [&visit](auto&... members) { (visit(members), ...); };
  all(path, n_ctx, n_sequences, n_batch, n_threads, n_gpu_layers, cache_type_k, cache_type_v,
      flash_attention, exact, kernels, tensor_split, lora, use_mmap, use_mlock, rope_freq_base,
      rope_freq_scale, workers, isolate, worker_timeout_s, widest, head, mtp);
}

OpenRequest sent(const OpenRequest& request) {
  WireWriter writer;
  put(writer, request);
  WireReader reader(writer.bytes());
  OpenRequest arrived = read_open_request(reader);
  EXPECT_TRUE(reader.finished());
  return arrived;
}

TEST(Wire, EveryOptionOfAModelArrivesButForTheParentsOwn) {
  int n_members = 0;
  ModelOptions count;
  each_member(count, [&n_members](auto&) { ++n_members; });
  int n_kept = 0;
  for (int i = 0; i < n_members; ++i) {
    OpenRequest request;
    int at = 0;
    each_member(request.model, [&](auto& member) {
      if (at++ == i) change(member);
    });
    ASSERT_FALSE(request.model == ModelOptions()) << "member " << i;
    const bool of_parent = request.model.worker_timeout_s != ModelOptions().worker_timeout_s ||
                           !request.model.head.empty();
    n_kept += of_parent;
    EXPECT_EQ(sent(request).model == request.model, !of_parent) << "member " << i;
  }
  EXPECT_EQ(n_kept, 2);
}

TEST(Wire, EveryFieldThatUsersSetOfAModelArrivesButForTheParentsOwn) {
  for (const Field<ModelOptions>& field : model_fields()) {
    OpenRequest request;
    visit_field(field, request.model, [&request](auto& place) {
      using Place = std::decay_t<decltype(place)>;
      if constexpr (std::is_same_v<Place, Choice<ModelOptions>>) {
        place.set(request.model, place.get(request.model) == 0 ? 1 : 0);
      } else if constexpr (requires { change(place); }) {
        change(place);
      }
    });
    ASSERT_FALSE(request.model == ModelOptions()) << field.name;
    const bool of_parent = field.name == "worker_timeout_s" || field.name == "head";
    EXPECT_EQ(sent(request).model == request.model, !of_parent) << field.name;
  }
}

TEST(Wire, AnErrorArrivesWithItsFieldWhereverTheMessageNamesIt) {
  const auto arrives = [](const Status& status) {
    WireWriter writer;
    put(writer, status);
    WireReader reader(writer.bytes());
    Status arrived = read_status(reader);
    EXPECT_TRUE(reader.finished());
    return arrived;
  };
  EXPECT_TRUE(arrives(Status()).ok());
  const Status plain = arrives(data_loss("'a.gguf' is damaged"));
  EXPECT_EQ(plain.code(), StatusCode::kDataLoss);
  EXPECT_EQ(plain.message(), "'a.gguf' is damaged");
  EXPECT_EQ(plain.field(), "");
  const Status named = arrives(wrong_value("cache_type_k", "'q9'", "f16 or q8_0"));
  EXPECT_EQ(named.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(named.field(), "cache_type_k");
  EXPECT_EQ(named.message_with("--cache-type-k"),
            "--cache-type-k is 'q9', but must be f16 or q8_0");
  const Status unnamed = arrives(unsupported("there are no GPUs").about("gpu_layers"));
  EXPECT_EQ(unnamed.field(), "gpu_layers");
  EXPECT_EQ(unnamed.message_with("--gpu-layers"), "there are no GPUs");
}

TEST(Wire, LengthsBeyondTheEndReserveNothing) {
  WireWriter writer;
  writer.number<std::uint64_t>(std::uint64_t{1} << 60);
  for (int kind = 0; kind < 3; ++kind) {
    WireReader reader(writer.bytes());
    const bool empty = kind == 0   ? reader.text().empty()
                       : kind == 1 ? reader.numbers<std::int32_t>().empty()
                                   : reader.texts().empty();
    EXPECT_TRUE(empty) << kind;
    EXPECT_TRUE(reader.failed()) << kind;
  }
}

TEST(Wire, ATreeArrivesAsItWas) {
  TokenTree tree(5);
  tree.add(0, 7, 1.0f, 1);
  tree.add(0, 8, 1.0f, 1);
  tree.add(1, 9, 1.0f, 1);
  const std::vector<Token> prefix{1, 2, 3};
  WireWriter writer;
  put(writer, EvalItem{.seq = 2, .prefix = prefix, .tree = &tree, .first_new = 1});
  WireReader reader(writer.bytes());
  const OwnedItem item = read_item(reader);
  ASSERT_TRUE(reader.finished());
  EXPECT_EQ(item.seq, 2);
  EXPECT_EQ(item.prefix, prefix);
  EXPECT_EQ(item.first_new, 1);
  ASSERT_TRUE(item.tree.has_value());
  ASSERT_EQ(item.tree->size(), 4);
  for (NodeId id = 0; id < 4; ++id) {
    EXPECT_EQ(item.tree->token(id), tree.token(id));
    EXPECT_EQ(item.tree->node(id).parent, tree.node(id).parent);
  }
}

TEST(Wire, NodesThatAreNoTreeAreRefused) {
  for (const std::vector<std::int32_t>& nodes :
       std::vector<std::vector<std::int32_t>>{{5},                     // half a node
                                              {5, -1, 6, 1},           // its own parent
                                              {5, -1, 6, -1},          // a second root
                                              {5, -1, 6, 0, 6, 0}}) {  // the same child twice
    WireWriter writer;
    writer.number<SeqId>(0);
    writer.numbers<Token>({});
    writer.numbers<std::int32_t>(nodes);
    writer.number<NodeId>(0);
    WireReader reader(writer.bytes());
    static_cast<void>(read_item(reader));
    EXPECT_TRUE(reader.failed()) << nodes.size();
  }
}

TEST(Channel, AMessageArrivesWholeWhateverItsLength) {
  Result<std::pair<FileDescriptor, FileDescriptor>> ends = Channel::make_pair();
  ASSERT_TRUE(ends.ok());
  Channel a(std::move(ends->first));
  Channel b(std::move(ends->second));
  const std::string body(3 << 20, 'x');  // more than a socket holds
  std::thread sender([&] {
    EXPECT_TRUE(a.send(1, "").ok());
    EXPECT_TRUE(a.send(2, body, 0xFFFFFFFFU).ok());
  });
  EXPECT_EQ(b.receive({}, 0)->kind, 1U);
  const Result<Message> second = b.receive({}, 0);
  EXPECT_EQ(second->body, body);
  EXPECT_EQ(second->call, 0xFFFFFFFFU);
  sender.join();
  int looks = 0;
  EXPECT_EQ(b.receive([&] { return ++looks < 3; }, 1).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(looks, 3);
}

TEST(Channel, WhatIsNoMessageOrTooLongIsRefused) {
  for (const bool too_long : {false, true}) {
    Result<std::pair<FileDescriptor, FileDescriptor>> ends = Channel::make_pair();
    ASSERT_TRUE(ends.ok());
    Channel good(std::move(ends->second));
    std::uint32_t header[4] = {too_long ? 0x4f75744dU : 0x12345678U, 1, too_long ? 1U << 31 : 0U,
                               0};
    ASSERT_EQ(::send(ends->first.get(), header, sizeof header, 0),
              static_cast<ssize_t>(sizeof header));
    EXPECT_EQ(good.receive({}, 0).status().code(), StatusCode::kDataLoss);
  }
}

TEST(Channel, AClosedEndIsAnErrorAndNoSignal) {
  Result<std::pair<FileDescriptor, FileDescriptor>> ends = Channel::make_pair();
  ASSERT_TRUE(ends.ok());
  Channel a(std::move(ends->first));
  ends->second.reset();
  EXPECT_EQ(a.send(1, "x").code(), StatusCode::kInternal);
  EXPECT_EQ(a.receive({}, 0).status().code(), StatusCode::kInternal);
}

TEST(SharedMemory, BothSidesSeeTheSameAndTheSizeStays) {
  Result<SharedMemory> parent = SharedMemory::create();
  ASSERT_TRUE(parent.ok()) << parent.status().message();
  Result<SharedMemory> child = SharedMemory::open(std::move(*parent->duplicate()));
  ASSERT_TRUE(child.ok()) << child.status().message();
  child->flag().store(true);
  EXPECT_TRUE(parent->flag().load());
  EXPECT_FALSE(child->map_rows(100).ok()) << "there are none yet";
  ASSERT_TRUE(parent->make_rows(100).ok());
  EXPECT_FALSE(child->map_rows(1 << 20).ok()) << "more than there is";
  ASSERT_TRUE(child->map_rows(100).ok());
  child->rows()[99] = 1.5f;
  EXPECT_EQ(parent->rows()[99], 1.5f);
#if defined(__linux__)
  EXPECT_NE(ftruncate(child->duplicate()->get(), 0), 0) << "sealed";
#endif
  EXPECT_FALSE(SharedMemory::create()->make_rows(std::uint64_t{1} << 62).ok());
}

// What a parent makes of a child that talks nonsense.
Status open_against(const std::function<void(Channel&)>& child) {
  std::thread thread;
  const RemoteModel::StartHost start =
      [&](RemoteModel::ChildEnds ends) -> Result<std::unique_ptr<ChildProcess>> {
    thread = std::thread([&child, socket = std::move(ends.channel)]() mutable {
      Channel channel(std::move(socket));
      child(channel);
    });
    return std::unique_ptr<ChildProcess>();
  };
  OpenRequest request;
  request.model.path = "a.gguf";
  const Status status = RemoteModel::open(start, request, {}, {}).status();
  thread.join();
  return status;
}

void say(Channel& channel, MessageKind kind, const WireWriter& body) {
  static_cast<void>(channel.send(static_cast<std::uint32_t>(kind), body.bytes()));
}

void say_hello(Channel& channel, std::uint32_t version) {
  WireWriter hello;
  hello.number(version);
  say(channel, MessageKind::kHello, hello);
}

TEST(RemoteModel, AnotherVersionIsRefusedSayingWhatToDo) {
  const Status status =
      open_against([](Channel& channel) { say_hello(channel, kProtocolVersion + 1); });
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("OUTRIDER_HOST_PROGRAM"), std::string::npos);
}

TEST(RemoteModel, NonsenseFromTheOtherSideIsAnError) {
  EXPECT_EQ(open_against([](Channel& channel) { say(channel, MessageKind::kDone, {}); }).code(),
            StatusCode::kInternal);
  for (const int kind : {0, 1, 2}) {
    const Status status = open_against([kind](Channel& channel) {
      say_hello(channel, kProtocolVersion);
      static_cast<void>(channel.receive({}, 0));
      WireWriter body;
      put(body, Status());
      OpenReport report;  // no vocabulary, no context: impossible
      if (kind == 1) put(body, report);
      if (kind == 2) body.text("and nothing else");
      say(channel, MessageKind::kOpened, body);
      static_cast<void>(channel.receive({}, 0));
    });
    EXPECT_EQ(status.code(), StatusCode::kInternal) << kind;
    EXPECT_NE(status.message().find("a.gguf"), std::string::npos) << status.message();
  }
}

TEST(RemoteModel, AnAnswerToACallThatWasNotMadeIsNonsense) {
  for (const std::uint32_t ahead : {0U, 1U}) {
    const Status status = open_against([ahead](Channel& channel) {
      say_hello(channel, kProtocolVersion);
      static_cast<void>(channel.receive({}, 0));
      OpenReport report;
      report.capabilities = {.n_vocab = 4,
                             .n_ctx = 8,
                             .n_batch = 4,
                             .n_sequences = 1,
                             .max_leaves = 1,
                             .max_width = 4};
      WireWriter opened;
      put(opened, Status());
      put(opened, report);
      say(channel, MessageKind::kOpened, opened);
      const Result<Message> map = channel.receive({}, 0);
      ASSERT_TRUE(map.ok());
      const std::vector<SequenceState> states(1);
      WireWriter done;
      put(done, Status());
      put(done, std::span<const SequenceState>(states));
      EXPECT_TRUE(
          channel
              .send(static_cast<std::uint32_t>(MessageKind::kDone), done.bytes(), map->call + ahead)
              .ok());
      static_cast<void>(channel.receive({}, 0));
    });
    EXPECT_EQ(status.ok(), ahead == 0) << status.message();
  }
}

// What a host makes of a parent that does.
Status serve_against(MessageKind kind, const WireWriter& body) {
  Result<std::pair<FileDescriptor, FileDescriptor>> ends = Channel::make_pair();
  Result<SharedMemory> memory = SharedMemory::create();
  Status result;
  std::thread host([&] {
    result = serve_model(
        std::move(ends->second), std::move(*memory->duplicate()),
        [](const OpenRequest&, const LoadHooks&,
           const std::function<void(double)>&) -> Result<HostedModel> {
          const Capabilities small{
              .n_vocab = 4, .n_ctx = 8, .n_batch = 4, .n_sequences = 1, .max_width = 4};
          HostedModel hosted;
          hosted.model = std::make_unique<testing::FakeModel>(small, testing::random_rows(4, 1, 1));
          return hosted;
        });
  });
  Channel parent(std::move(ends->first));
  static_cast<void>(parent.receive({}, 0));  // hello
  WireWriter request;
  put(request, OpenRequest());
  say(parent, MessageKind::kOpen, request);
  static_cast<void>(parent.receive({}, 0));  // opened
  EXPECT_TRUE(memory->make_rows(16).ok());
  WireWriter map;
  map.number<std::uint64_t>(16);
  say(parent, MessageKind::kMap, map);
  EXPECT_TRUE(parent.receive({}, 0).ok());
  say(parent, kind, body);
  static_cast<void>(parent.receive({}, 0));
  say(parent, MessageKind::kBye, {});
  host.join();
  return result;
}

TEST(ServeModel, MessagesThatMakeNoSenseEndIt) {
  EXPECT_TRUE(serve_against(MessageKind::kBye, {}).ok()) << "the control";
  WireWriter nobody;
  nobody.number<SeqId>(1);
  nobody.numbers<NodeId>({});
  EXPECT_FALSE(serve_against(MessageKind::kCommit, nobody).ok());
  WireWriter too_far;
  too_far.number<SeqId>(0);
  too_far.number<Pos>(1);
  EXPECT_FALSE(serve_against(MessageKind::kTruncate, too_far).ok());
  WireWriter cut;
  cut.number<std::uint64_t>(5);
  EXPECT_FALSE(serve_against(MessageKind::kEvaluate, cut).ok());
  EXPECT_FALSE(serve_against(MessageKind::kHello, {}).ok());
  EXPECT_FALSE(serve_against(static_cast<MessageKind>(999), {}).ok());
  WireWriter few;
  few.number<std::uint64_t>(3);
  EXPECT_FALSE(serve_against(MessageKind::kMap, few).ok());
}

}  // namespace
}  // namespace outrider
