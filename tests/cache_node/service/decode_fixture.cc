#include "tests/cache_node/service/decode_fixture.h"

#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "cache_node/service/decode_messages.h"
#include "common/identity/segment_digest.h"
#include "common/rpc/channel_options.h"
#include "tests/cache_node/decode/engine/slot_pool.h"

namespace cairn::node {
namespace {

constexpr double kTolerance = 2e-5;

std::string TextOf(const std::vector<float>& numbers) {
  std::string bytes(numbers.size() * sizeof(float), '\0');
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<float> FloatsOf(const std::string& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

}  // namespace

bool TestStream::SendOpen(const std::string& fingerprint,
                          const std::vector<v1::AttentionParameters>& parameters) {
  v1::DecodeRequest request;
  request.mutable_open()->set_fingerprint(fingerprint);
  for (const v1::AttentionParameters& one : parameters) {
    *request.mutable_open()->add_parameters() = one;
  }
  return Send(request);
}

bool TestStream::Send(uint64_t step, uint32_t layer, const std::vector<v1::AttendItem>& items,
                      uint32_t parameters) {
  v1::DecodeRequest request;
  request.set_step(step);
  request.set_layer(layer);
  request.set_parameters(parameters);
  for (const v1::AttendItem& item : items) *request.add_items() = item;
  return Send(request);
}

std::vector<v1::AttendResult> TestStream::Receive(uint64_t step) {
  v1::DecodeResponse response;
  if (!stream_->Read(&response)) {
    ADD_FAILURE() << "the stream ended: " << Finish().error_message();
    return {};
  }
  EXPECT_EQ(response.step(), step);
  return {response.results().begin(), response.results().end()};
}

std::vector<v1::AttendResult> TestStream::Ask(uint64_t step, uint32_t layer,
                                              const std::vector<v1::AttendItem>& items) {
  EXPECT_TRUE(Send(step, layer, items));
  return Receive(step);
}

grpc::Status TestStream::Finish() {
  finished_ = true;
  return stream_->Finish();
}

NodeConfig DecodeFixture::DecodeConfigOfTests() {
  NodeConfig config = SmallConfig();
  config.decode.memory = ByteSize::MiB(8);
  config.decode.threads = 2;
  return config;
}

DecodeFixture::DecodeFixture() {
  namespace_.layout = {.version = 1, .block_tokens = kBlockTokens, .slices = 2, .groups = {}};
  namespace_.layout.groups.push_back({.kind = GroupKind::kFull,
                                      .required = 1,
                                      .layers = kLayers,
                                      .kv_heads = kKvHeads,
                                      .key_dim = kDim,
                                      .value_dim = kDim,
                                      .dtype = Dtype::kFloat32});
  map_ = *PayloadMap::Make(namespace_.layout);
  shape_ = *ShapeFromProto(map_, Parameters());
  StartDecodeNode(DecodeConfigOfTests());
}

void DecodeFixture::StartDecodeNode(const NodeConfig& config) {
  decode_ = nullptr;
  StartNode(config);
  decode_ = v1::Decode::NewStub(channel_);
}

std::unique_ptr<v1::Decode::Stub> DecodeFixture::NewDecodeStub() const {
  return v1::Decode::NewStub(grpc::CreateCustomChannel(
      node_->addresses().front(), grpc::InsecureChannelCredentials(), MakeChannelArguments()));
}

std::vector<float> DecodeFixture::Row(uint32_t token, uint64_t position, uint32_t layer,
                                      bool value) {
  std::mt19937 random(
      static_cast<uint32_t>(token * 7919u + position * 104729u + layer * 31u + (value ? 17u : 0u)));
  std::vector<float> row(kKvHeads * kDim);
  for (float& number : row) {
    number = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  }
  return row;
}

std::vector<DecodeFixture::Line> DecodeFixture::MakeSlot(absl::Span<const uint32_t> tokens,
                                                         uint64_t position) const {
  std::vector<Line> slot(map_.block_bytes() / sizeof(Line));
  std::memset(slot.data(), 0, map_.block_bytes());
  const kernels::KvSegment places = kernels::SegmentOf(shape_.kv);
  const uint32_t heads = kKvHeads / 2;
  for (size_t t = 0; t < tokens.size(); ++t) {
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      for (const bool value : {false, true}) {
        const std::vector<float> row = Row(tokens[t], position + t, layer, value);
        for (uint32_t head = 0; head < kKvHeads; ++head) {
          std::byte* const tile = BytesOf(&slot) + shape_.SegmentOffset(head / heads, layer) +
                                  (value ? places.value : places.key);
          std::memcpy(tile + ((head % heads) * kBlockTokens + t) * kDim * sizeof(float),
                      &row[head * kDim], kDim * sizeof(float));
        }
      }
    }
  }
  return slot;
}

TestPrompt DecodeFixture::PutPrompt(uint32_t seed, size_t blocks) {
  const TestPrompt prompt = MakePrompt(seed, blocks);
  const std::string token = Reserve(prompt);
  std::vector<v1::WriteRequest> frames;
  v1::CommitRequest commit;
  commit.set_token(token);
  for (uint32_t block = 0; block < blocks; ++block) {
    const uint64_t position = uint64_t{block} * kBlockTokens;
    const std::vector<Line> slot =
        MakeSlot(absl::MakeConstSpan(prompt.tokens).subspan(position, kBlockTokens), position);
    v1::WriteRequest& frame = frames.emplace_back();
    frame.set_token(token);
    for (const PayloadMap::Part& part : map_.parts()) {
      v1::Piece* const piece = frame.add_pieces();
      piece->set_block(block);
      piece->set_group(part.group);
      piece->set_slice(part.slice);
      piece->set_length(static_cast<uint32_t>(part.bytes));
      const auto* const bytes = reinterpret_cast<const uint8_t*>(slot.data()) + part.offset;
      for (uint32_t layer = 0; layer < part.layers; ++layer) {
        piece->add_digests(SegmentDigest(prompt.keys[block], {part.group, part.slice, layer},
                                         {bytes + layer * part.segment_bytes, part.segment_bytes}));
      }
      frame.mutable_payload()->append(reinterpret_cast<const char*>(bytes), part.bytes);
      v1::Piece committed = *piece;
      committed.set_length(0);
      *commit.add_pieces() = committed;
    }
  }
  EXPECT_TRUE(WriteFrames(frames).ok());
  v1::CommitResponse response;
  EXPECT_TRUE(stub_->Commit(CallerContext().get(), commit, &response).ok());
  EXPECT_EQ(response.blocks_present(), blocks);
  return prompt;
}

std::string DecodeFixture::Lease(const TestPrompt& prompt) {
  v1::LookupRequest request = LookupRequestOf(prompt);
  request.mutable_prompts(0)->mutable_regions(0)->mutable_scope()->set_tenant(tenant_);
  request.mutable_lease()->set_readers(1);
  v1::LookupResponse response;
  EXPECT_TRUE(stub_->Lookup(CallerContext().get(), request, &response).ok());
  EXPECT_EQ(response.results(0).blocks_leased(), prompt.keys.size());
  return response.lease();
}

void DecodeFixture::EndLease(const std::string& lease) {
  v1::EndLeaseRequest request;
  request.set_lease(lease);
  request.add_usable_blocks(0);
  v1::EndLeaseResponse response;
  EXPECT_TRUE(stub_->EndLease(CallerContext().get(), request, &response).ok());
}

v1::AttentionParameters DecodeFixture::Parameters() {
  v1::AttentionParameters parameters;
  parameters.set_query_heads(kQueryHeads);
  parameters.set_row_dtype(3);
  parameters.set_softmax_scale(0.25f);
  return parameters;
}

std::string DecodeFixture::Queries(uint32_t rows, uint32_t seed) const {
  std::mt19937 random(seed);
  std::vector<float> numbers(rows * kQueryHeads * kDim);
  for (float& number : numbers) number = static_cast<float>(random() % 2001) / 500.0f - 2.0f;
  return TextOf(numbers);
}

v1::AttendItem DecodeFixture::LeasedItem(const std::string& lease, uint64_t position, uint32_t rows,
                                         uint32_t first_block, uint32_t blocks) const {
  v1::AttendItem item;
  item.mutable_leased()->set_lease(lease);
  item.mutable_leased()->set_first_block(first_block);
  item.mutable_leased()->set_blocks(blocks);
  item.set_position(position);
  item.set_rows(rows);
  item.set_queries(Queries(rows, static_cast<uint32_t>(position)));
  return item;
}

v1::AttendItem DecodeFixture::SequenceItem(const std::string& sequence, uint64_t position,
                                           uint32_t rows) const {
  v1::AttendItem item;
  item.set_sequence(sequence);
  item.set_position(position);
  item.set_rows(rows);
  item.set_queries(Queries(rows, static_cast<uint32_t>(position)));
  return item;
}

v1::AttendItem DecodeFixture::AppendItem(const std::string& sequence, uint32_t layer,
                                         uint64_t position,
                                         const std::vector<uint32_t>& tokens) const {
  v1::AttendItem item = SequenceItem(sequence, position, static_cast<uint32_t>(tokens.size()));
  for (size_t t = 0; t < tokens.size(); ++t) {
    item.mutable_keys()->append(TextOf(Row(tokens[t], position + t, layer, false)));
    item.mutable_values()->append(TextOf(Row(tokens[t], position + t, layer, true)));
    item.add_tokens(tokens[t]);
  }
  return item;
}

grpc::Status DecodeFixture::Attend(const std::vector<v1::AttendItem>& items,
                                   v1::AttendResponse* response, uint32_t layer) {
  v1::AttendRequest request;
  request.set_fingerprint(fingerprint_);
  *request.mutable_parameters() = Parameters();
  request.set_layer(layer);
  for (const v1::AttendItem& item : items) *request.add_items() = item;
  return decode_->Attend(CallerContext().get(), request, response);
}

v1::OpenSequenceRequest DecodeFixture::OpenRequestOf(const std::vector<uint32_t>& tokens,
                                                     uint64_t reserve_tokens) const {
  v1::OpenSequenceRequest request;
  request.set_fingerprint(fingerprint_);
  v1::Region* const region = request.mutable_prompt()->add_regions();
  region->mutable_scope()->set_tenant(tenant_);
  region->mutable_tokens()->Add(tokens.begin(), tokens.end());
  request.set_reserve_tokens(reserve_tokens);
  return request;
}

grpc::Status DecodeFixture::Open(const v1::OpenSequenceRequest& request,
                                 v1::OpenSequenceResponse* response) {
  return decode_->OpenSequence(CallerContext().get(), request, response);
}

std::string DecodeFixture::OpenSequence(const std::vector<uint32_t>& tokens,
                                        uint64_t reserve_tokens) {
  v1::OpenSequenceResponse response;
  const grpc::Status status = Open(OpenRequestOf(tokens, reserve_tokens), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.sequence();
}

void DecodeFixture::Append(TestStream& stream, const std::string& sequence, uint64_t position,
                           const std::vector<uint32_t>& tokens) {
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    const auto results =
        stream.Ask(100 + layer, layer, {AppendItem(sequence, layer, position, tokens)});
    ASSERT_EQ(results.size(), 1u);
    ASSERT_EQ(results[0].code(), 0) << results[0].message();
    EXPECT_EQ(results[0].length_tokens(), position + tokens.size());
  }
}

v1::GetSequenceResponse DecodeFixture::GetSequence(const std::string& sequence) {
  v1::GetSequenceRequest request;
  request.set_sequence(sequence);
  v1::GetSequenceResponse response;
  const grpc::Status status = decode_->GetSequence(CallerContext().get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

uint32_t DecodeFixture::Close(const std::string& sequences) {
  v1::CloseSequencesRequest request;
  request.set_sequences(sequences);
  v1::CloseSequencesResponse response;
  const grpc::Status status = decode_->CloseSequences(CallerContext().get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.closed();
}

std::unique_ptr<TestStream> DecodeFixture::NewStream(v1::Decode::Stub* stub) {
  auto stream =
      std::make_unique<TestStream>(stub == nullptr ? decode_.get() : stub, CallerContext());
  EXPECT_TRUE(stream->SendOpen(fingerprint_, {Parameters()}));
  EXPECT_TRUE(stream->Receive(0).empty());
  return stream;
}

void DecodeFixture::ExpectAnswer(const v1::AttendResult& result, const v1::AttendItem& item,
                                 uint32_t layer, const std::vector<uint32_t>& tokens,
                                 uint32_t first_block) const {
  ASSERT_EQ(result.code(), 0) << result.message();
  std::deque<std::vector<Line>> memory;
  std::vector<const std::byte*> slots;
  const uint64_t first = uint64_t{first_block} * kBlockTokens;
  for (uint64_t at = first; at < tokens.size(); at += kBlockTokens) {
    memory.push_back(MakeSlot(absl::MakeConstSpan(tokens).subspan(at, kBlockTokens), at));
    slots.push_back(BytesOf(&memory.back()));
  }
  SlotRun run;
  run.slots = slots;
  run.first_position = first;
  run.tokens = tokens.size() - first;
  TestRows rows;
  rows.position = item.position();
  rows.rows = item.rows();
  const auto* const queries = reinterpret_cast<const std::byte*>(item.queries().data());
  rows.queries.assign(queries, queries + item.queries().size());
  rows.output = FloatsOf(result.output());
  rows.log_sum_exp = FloatsOf(result.log_sum_exp());
  ASSERT_EQ(rows.output.size(), item.rows() * shape_.OutputRowElements());
  ExpectNear(rows, SlotPool::Reference(shape_, layer, run, rows), kTolerance);
}

}  // namespace cairn::node
