#include "tests/cache_node/service/node_fixture.h"

#include <map>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/identity/key_chain.h"
#include "common/identity/segment_digest.h"
#include "common/rpc/channel_options.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/namespace_conversion.h"
#include "common/wire/limits.h"
#include "tests/testing/identity_samples.h"

namespace cairn::node {
namespace {

constexpr auto kCallTimeout = std::chrono::seconds(60);

absl::Span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

NodeFixture::NodeFixture()
    : namespace_(testing::SampleNamespace()), map_(*PayloadMap::Make(namespace_.layout)) {
  StartNode(SmallConfig());
}

NodeConfig NodeFixture::SmallConfig() {
  NodeConfig config;
  config.listen = {"127.0.0.1:0"};
  config.security.insecure = true;
  config.metrics_listen.clear();
  config.node_id = "node-1";
  config.worker_address = "worker:1";
  config.host_memory = ByteSize::MiB(64);
  config.index_memory = ByteSize::MiB(16);
  config.in_flight_bytes = ByteSize::MiB(8);
  config.request_memory = ByteSize::MiB(1);
  config.connections_max = 64;
  config.feed_queue_records = 1024;
  config.drain_grace = absl::Milliseconds(200);
  return config;
}

void NodeFixture::StartNode(const NodeConfig& config, DiskTier* disk) {
  stub_ = nullptr;
  node_ = nullptr;
  absl::StatusOr<std::unique_ptr<Node>> node = Node::Start(config, disk);
  ASSERT_TRUE(node.ok()) << node.status();
  node_ = *std::move(node);
  channel_ = grpc::CreateCustomChannel(node_->addresses().front(),
                                       grpc::InsecureChannelCredentials(), MakeChannelArguments());
  stub_ = v1::CacheNode::NewStub(channel_);
  fingerprint_ = Register(namespace_, "model");
}

std::unique_ptr<grpc::ClientContext> NodeFixture::Context() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  return context;
}

std::unique_ptr<grpc::ClientContext> NodeFixture::CallerContext() const {
  std::unique_ptr<grpc::ClientContext> context = Context();
  if (!token_.empty()) context->AddMetadata("authorization", absl::StrCat("Bearer ", token_));
  return context;
}

std::unique_ptr<v1::CacheNode::Stub> NodeFixture::NewStub() const {
  return v1::CacheNode::NewStub(grpc::CreateCustomChannel(
      node_->addresses().front(), grpc::InsecureChannelCredentials(), MakeChannelArguments()));
}

std::string NodeFixture::Register(const Namespace& name_space, const std::string& name) {
  v1::RegisterNamespaceRequest request;
  request.set_name(name);
  *request.mutable_fields() = NamespaceToProto(name_space);
  v1::RegisterNamespaceResponse response;
  const grpc::Status status = stub_->RegisterNamespace(CallerContext().get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.block_bytes(), PayloadMap::Make(name_space.layout)->block_bytes());
  return response.fingerprint();
}

TestPrompt NodeFixture::MakePrompt(uint32_t seed, size_t blocks) const {
  TestPrompt prompt;
  std::mt19937 random(seed);
  for (size_t i = 0; i < blocks * namespace_.layout.block_tokens; ++i) {
    prompt.tokens.push_back(static_cast<uint32_t>(random()));
  }
  const Sha256BlockHasher hasher;
  const std::vector<Region> regions = {{.scope = {.tenant = tenant_, .adapter = "", .salt = ""},
                                        .tokens = prompt.tokens,
                                        .external_ids = {}}};
  prompt.keys = *PromptKeys(hasher, *KeyRulesOf(namespace_), regions, {});
  return prompt;
}

std::string NodeFixture::SegmentBytes(const BlockKey& key, const SegmentId& id, uint64_t size) {
  std::mt19937_64 random(SegmentDigestSeed(key, id));
  std::string bytes(size, '\0');
  for (size_t i = 0; i + 8 <= size; i += 8) {
    const uint64_t word = random();
    std::memcpy(&bytes[i], &word, 8);
  }
  return bytes;
}

v1::ReserveRequest NodeFixture::ReserveRequestOf(const TestPrompt& prompt) const {
  v1::ReserveRequest request;
  request.set_fingerprint(fingerprint_);
  request.set_keys(KeysToProto(prompt.keys));
  request.mutable_tokens()->Add(prompt.tokens.begin(), prompt.tokens.end());
  return request;
}

std::string NodeFixture::Reserve(const TestPrompt& prompt) {
  v1::ReserveResponse response;
  const grpc::Status status =
      stub_->Reserve(CallerContext().get(), ReserveRequestOf(prompt), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.answers_size(), static_cast<int>(prompt.keys.size()));
  for (const v1::ReserveAnswer& answer : response.answers()) {
    EXPECT_EQ(answer.outcome(), v1::RESERVE_OUTCOME_RESERVED);
  }
  return response.token();
}

v1::WriteRequest NodeFixture::FrameOf(const std::string& token, const TestPrompt& prompt,
                                      uint32_t block) const {
  v1::WriteRequest frame;
  frame.set_token(token);
  for (const PayloadMap::Part& part : map_.parts()) {
    v1::Piece* piece = frame.add_pieces();
    piece->set_block(block);
    piece->set_group(part.group);
    piece->set_slice(part.slice);
    piece->set_length(static_cast<uint32_t>(part.bytes));
    for (uint32_t layer = 0; layer < part.layers; ++layer) {
      const SegmentId id{part.group, part.slice, layer};
      const std::string bytes = SegmentBytes(prompt.keys[block], id, part.segment_bytes);
      piece->add_digests(SegmentDigest(prompt.keys[block], id, Bytes(bytes)));
      frame.mutable_payload()->append(bytes);
    }
  }
  return frame;
}

grpc::Status NodeFixture::WriteFrames(const std::vector<v1::WriteRequest>& frames,
                                      std::vector<v1::WriteResponse>* responses) {
  const auto context = CallerContext();
  const auto stream = stub_->Write(context.get());
  for (const v1::WriteRequest& frame : frames) {
    v1::WriteResponse response;
    if (!stream->Write(frame) || !stream->Read(&response)) break;
    if (responses == nullptr) {
      EXPECT_EQ(response.errors_size(), 0) << response.ShortDebugString();
    } else {
      responses->push_back(response);
    }
  }
  stream->WritesDone();
  return stream->Finish();
}

v1::CommitRequest NodeFixture::CommitRequestOf(const std::string& token,
                                               const TestPrompt& prompt) const {
  v1::CommitRequest request;
  request.set_token(token);
  for (uint32_t block = 0; block < prompt.keys.size(); ++block) {
    const v1::WriteRequest frame = FrameOf(token, prompt, block);
    for (v1::Piece piece : frame.pieces()) {
      piece.set_length(0);
      *request.add_pieces() = piece;
    }
  }
  return request;
}

void NodeFixture::Put(const TestPrompt& prompt) {
  const std::string token = Reserve(prompt);
  std::vector<v1::WriteRequest> frames;
  for (uint32_t block = 0; block < prompt.keys.size(); ++block) {
    frames.push_back(FrameOf(token, prompt, block));
  }
  const grpc::Status written = WriteFrames(frames);
  ASSERT_TRUE(written.ok()) << written.error_message();
  v1::CommitResponse response;
  const grpc::Status committed =
      stub_->Commit(CallerContext().get(), CommitRequestOf(token, prompt), &response);
  ASSERT_TRUE(committed.ok()) << committed.error_message();
  EXPECT_TRUE(response.complete()) << response.ShortDebugString();
  EXPECT_EQ(response.blocks_present(), prompt.keys.size());
}

v1::LookupRequest NodeFixture::LookupRequestOf(const TestPrompt& prompt) const {
  v1::LookupRequest request;
  request.set_fingerprint(fingerprint_);
  v1::Region* region = request.add_prompts()->add_regions();
  region->mutable_scope()->set_tenant("public");
  region->mutable_tokens()->Add(prompt.tokens.begin(), prompt.tokens.end());
  return request;
}

uint32_t NodeFixture::Present(const TestPrompt& prompt) {
  v1::LookupResponse response;
  const grpc::Status status =
      stub_->Lookup(CallerContext().get(), LookupRequestOf(prompt), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.results_size() == 1 ? response.results(0).blocks_present() : 0;
}

v1::GetRequest NodeFixture::GetRequestOf(const TestPrompt& prompt) const {
  v1::GetRequest request;
  request.set_fingerprint(fingerprint_);
  request.set_keys(KeysToProto(prompt.keys));
  return request;
}

grpc::Status NodeFixture::Get(const v1::GetRequest& request, std::vector<v1::GetResponse>* frames,
                              v1::CacheNode::Stub* stub) {
  const auto context = CallerContext();
  const auto stream = (stub == nullptr ? stub_.get() : stub)->Get(context.get(), request);
  v1::GetResponse frame;
  while (stream->Read(&frame)) frames->push_back(frame);
  return stream->Finish();
}

v1::DescribeResponse NodeFixture::Describe() {
  v1::DescribeResponse response;
  v1::DescribeRequest request;
  request.set_shards(true);
  const grpc::Status status = stub_->Describe(CallerContext().get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

std::map<std::pair<uint32_t, size_t>, std::string> NodeFixture::Assemble(
    const TestPrompt& prompt, const PayloadMap& map,
    const std::vector<v1::GetResponse>& frames) const {
  std::map<std::pair<uint32_t, size_t>, std::string> segments;
  for (const v1::GetResponse& frame : frames) {
    EXPECT_LE(frame.payload().size(), kFramePayloadBytesMax);
    size_t at = 0;
    for (const v1::Piece& piece : frame.pieces()) {
      EXPECT_EQ(piece.state(), v1::BLOCK_STATE_UNSPECIFIED);
      const size_t first = *map.FindSegment({piece.group(), piece.slice(), piece.layer()});
      const uint64_t size = map.SegmentBytesAt(first);
      size_t segment = first;
      for (uint64_t left = piece.length(); left > 0; ++segment) {
        std::string& bytes = segments[{piece.block(), segment}];
        const uint64_t taken = std::min<uint64_t>(left, size - bytes.size());
        EXPECT_EQ(bytes.size(), segment == first ? piece.offset() : 0u);
        bytes += frame.payload().substr(at, taken);
        at += taken;
        left -= taken;
        if (bytes.size() < size) continue;
        EXPECT_EQ(piece.digests(static_cast<int>(segment - first)),
                  SegmentDigest(prompt.keys[piece.block()], map.SegmentAt(segment), Bytes(bytes)));
      }
      EXPECT_EQ(static_cast<size_t>(piece.digests_size()), segment - first);
    }
    EXPECT_EQ(at, frame.payload().size());
  }
  return segments;
}

}  // namespace cairn::node
