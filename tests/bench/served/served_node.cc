#include "tests/bench/served/served_node.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/channel_options.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/limits.h"
#include "tests/testing/child_process.h"

namespace cairn::bench {
namespace {

constexpr uint32_t kRowsBfloat16 = 2;
constexpr absl::Duration kCallMax = absl::Seconds(10);
constexpr size_t kPatternNumbers = 1 << 19;

Layout OneLayer() {
  Layout layout;
  layout.version = 1;
  layout.block_tokens = kServedBlockTokens;
  layout.slices = 1;
  Group group;
  group.kind = GroupKind::kFull;
  group.required = true;
  group.layers = 1;
  group.kv_heads = kServedKvHeads;
  group.key_dim = kServedHeadDim;
  group.value_dim = kServedHeadDim;
  group.dtype = Dtype::kBfloat16;
  group.scales = ScaleKind::kNone;
  layout.groups = {group};
  return layout;
}

// Numbers of about 1, so that attention over them is finite.
std::vector<uint16_t> Bfloat16Numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> numbers(count);
  for (uint16_t& number : numbers) {
    const float value = normal(random);
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    number = static_cast<uint16_t>(bits >> 16);
  }
  return numbers;
}

std::string SocketOf(const std::string& folder) {
  return absl::StrCat("unix:", folder, "/node.sock");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServedNode>> ServedNode::Start(uint64_t pool_mib, int threads) {
  std::unique_ptr<ServedNode> served(new ServedNode());
  served->folder_ = testing::MakeTempFolder();
  const std::string socket = SocketOf(served->folder_);
  node::NodeConfig config;
  config.listen = {"127.0.0.1:0", socket};
  config.security.insecure = true;
  config.metrics_listen.clear();
  config.node_id = "served";
  config.host_memory = ByteSize::MiB(pool_mib);
  config.decode.memory = ByteSize::MiB(64);
  config.decode.threads = threads;
  absl::StatusOr<std::unique_ptr<node::Node>> node = node::Node::Start(config);
  if (!node.ok()) return node.status();
  served->node_ = *std::move(node);
  const ClientParts parts = served->parts_.parts();
  served->parts_clock_ = parts.clock;
  ClientOptions options;
  options.use_local = false;  // What is measured is the wire.
  options.target = served->node_->addresses().front();
  served->cache_ = std::make_unique<CacheNodeClient>(options, parts);
  served->tcp_decode_ = std::make_unique<DecodeClient>(options, parts);
  options.target = socket;
  served->unix_decode_ = std::make_unique<DecodeClient>(options, parts);
  served->calls_ = v1::Decode::NewStub(grpc::CreateCustomChannel(
      socket, grpc::InsecureChannelCredentials(), MakeChannelArguments({})));
  absl::StatusOr<NamespaceHandle> name_space = RegisterLayout(*served->cache_, OneLayer());
  if (!name_space.ok()) return name_space.status();
  served->name_space_ = std::make_unique<NamespaceHandle>(*std::move(name_space));
  for (const uint32_t query_heads : {kServedQueryHeads, kServedFewHeads}) {
    v1::AttentionParameters& parameters = served->parameters_.emplace_back();
    parameters.set_query_heads(query_heads);
    parameters.set_row_dtype(kRowsBfloat16);
    parameters.set_softmax_scale(0.088f);  // 1 / sqrt(128)
  }
  return served;
}

ServedNode::~ServedNode() {
  unix_decode_ = nullptr;
  tcp_decode_ = nullptr;
  calls_ = nullptr;
  cache_ = nullptr;
  node_ = nullptr;
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::Status ServedNode::Put(uint32_t number, size_t blocks) {
  if (prompts_.size() <= number) prompts_.resize(number + 1);
  prompts_[number] = std::make_unique<BenchPrompt>(*cache_, *name_space_, number, blocks);
  const std::vector<uint16_t> kv = Bfloat16Numbers(kPatternNumbers, 3);
  return PutAll(*cache_, *name_space_, prompts_[number]->prompt(),
                {reinterpret_cast<const uint8_t*>(kv.data()), kv.size() * sizeof(uint16_t)});
}

absl::StatusOr<std::vector<node::BlockPin>> ServedNode::Pin(uint32_t number, size_t blocks) {
  std::vector<node::BlockPin> pins;
  for (size_t i = 0; i < blocks; ++i) {
    absl::StatusOr<node::BlockStore::PinAnswer> answer =
        node_->store().PinForRead(name_space_->tenant(), name_space_->fingerprint(), std::nullopt,
                                  prompts_[number]->keys()[i]);
    if (!answer.ok()) return answer.status();
    if (!answer->pin) return absl::InternalError("a block that was put is not there");
    pins.push_back(std::move(answer->pin));
  }
  return pins;
}

absl::StatusOr<SequenceId> ServedNode::Open(uint32_t number, uint32_t blocks) {
  const absl::StatusOr<OpenedSequence> opened =
      unix_decode_->OpenSequence(*name_space_, prompts_[number]->prompt(), {.blocks_max = blocks});
  if (!opened.ok()) return opened.status();
  if (opened->pinned.end != uint64_t{blocks} * kServedBlockTokens) {
    return absl::InternalError("a prompt that was put is not all there");
  }
  return opened->id;
}

void ServedNode::Close(absl::Span<const SequenceId> sequences) {
  CAIRN_CHECK_OK(unix_decode_->CloseSequences(sequences).status());
}

absl::Status ServedNode::Fetch(uint32_t number, size_t blocks, absl::Span<uint8_t> bytes) {
  const auto keys = absl::MakeConstSpan(prompts_[number]->keys()).subspan(0, blocks);
  const size_t block_bytes = name_space_->block_bytes();
  for (size_t first = 0; first < blocks; first += kKeysPerGetMax) {
    const size_t count = std::min<size_t>(kKeysPerGetMax, blocks - first);
    const absl::Status status = GetAll(*cache_, *name_space_, keys.subspan(first, count), {},
                                       bytes.subspan(first * block_bytes, count * block_bytes));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::unique_ptr<DecodeClient> ServedNode::Connect() {
  ClientOptions options;
  options.use_local = false;
  options.target = SocketOf(folder_);
  return std::make_unique<DecodeClient>(options, parts_.parts());
}

std::unique_ptr<DecodeStream> ServedNode::OpenStream(Transport transport, CallQueue* queue) {
  return OpenStream(transport == Transport::kUnix ? unix_decode_.get() : tcp_decode_.get(), queue);
}

std::unique_ptr<DecodeStream> ServedNode::OpenStream(DecodeClient* client, CallQueue* queue) {
  return client->OpenStream(queue, name_space_->fingerprint(), parameters_);
}

absl::Status ServedNode::CallEmpty() {
  grpc::ClientContext context;
  SetDeadline(kCallMax, &context);
  v1::CloseSequencesResponse response;
  return FromGrpcStatus(calls_->CloseSequences(&context, {}, &response));
}

std::vector<uint16_t> QueryRow(uint32_t seed, uint32_t query_heads) {
  return Bfloat16Numbers(size_t{query_heads} * kServedHeadDim, seed);
}

v1::DecodeRequest StepOver(absl::Span<const SequenceId> sequences, uint64_t tokens, uint32_t seed,
                           uint32_t query_heads) {
  v1::DecodeRequest request;
  request.set_parameters(query_heads == kServedQueryHeads ? 0 : 1);
  for (size_t i = 0; i < sequences.size(); ++i) {
    v1::AttendItem* const item = request.add_items();
    item->set_sequence(std::string(sequences[i].view()));
    item->set_position(tokens - 1);
    item->set_rows(1);
    const std::vector<uint16_t> row = QueryRow(seed + static_cast<uint32_t>(i), query_heads);
    item->set_queries(row.data(), row.size() * sizeof(uint16_t));
  }
  return request;
}

}  // namespace cairn::bench
