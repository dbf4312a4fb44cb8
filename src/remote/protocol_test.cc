// Messages that are cut, wrong or from another world: an error each, on both sides.
#include "remote/protocol.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

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
    EXPECT_TRUE(a.send(2, body).ok());
  });
  EXPECT_EQ(b.receive({}, 0)->kind, 1U);
  EXPECT_EQ(b.receive({}, 0)->body, body);
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
    std::uint32_t header[4] = {too_long ? 0x4f75744dU : 0x12345678U, 1, 0, too_long ? 1U : 0U};
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
