// DecodeFixture: a node that serves attention, called as a worker would; prompts, rows and answers
// whose numbers follow from tokens and positions, so that any answer can be held against the
// kernels' reference.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cache_node/decode/engine/attend_shape.h"
#include "cache_node/decode/slot_run.h"
#include "cairn/v1/decode.grpc.pb.h"
#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {

// One DecodeStream of a worker.
class TestStream {
 public:
  TestStream(v1::Decode::Stub* stub, std::unique_ptr<grpc::ClientContext> context)
      : context_(std::move(context)), stream_(stub->DecodeStream(context_.get())) {}
  ~TestStream() {
    if (!finished_) context_->TryCancel();
    if (!finished_) (void)Finish();
  }

  bool Send(const v1::DecodeRequest& request) { return stream_->Write(request); }
  bool SendOpen(const std::string& fingerprint,
                const std::vector<v1::AttentionParameters>& parameters);
  bool Send(uint64_t step, uint32_t layer, const std::vector<v1::AttendItem>& items,
            uint32_t parameters = 0);
  // The next answer, which must be this step's.
  std::vector<v1::AttendResult> Receive(uint64_t step);
  // Sends, and receives.
  std::vector<v1::AttendResult> Ask(uint64_t step, uint32_t layer,
                                    const std::vector<v1::AttendItem>& items);
  bool ReceiveAny(v1::DecodeResponse* response) { return stream_->Read(response); }
  void WritesDone() { stream_->WritesDone(); }
  grpc::Status Finish();
  void Cancel() { context_->TryCancel(); }

 private:
  const std::unique_ptr<grpc::ClientContext> context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::DecodeRequest, v1::DecodeResponse>> stream_;
  bool finished_ = false;
};

class DecodeFixture : public NodeFixture {
 protected:
  static constexpr uint32_t kBlockTokens = 16;
  static constexpr uint32_t kLayers = 2;
  static constexpr uint32_t kKvHeads = 4;
  static constexpr uint32_t kQueryHeads = 8;
  static constexpr uint32_t kDim = 16;

  DecodeFixture();
  static NodeConfig DecodeConfigOfTests();
  void StartDecodeNode(const NodeConfig& config);
  std::unique_ptr<v1::Decode::Stub> NewDecodeStub() const;

  // --- Stored ---
  // Its blocks hold what follows from its tokens.
  TestPrompt PutPrompt(uint32_t seed, size_t blocks);
  std::string Lease(const TestPrompt& prompt);
  void EndLease(const std::string& lease);

  // --- Asked ---
  static v1::AttentionParameters Parameters();
  std::string Queries(uint32_t rows, uint32_t seed) const;
  v1::AttendItem LeasedItem(const std::string& lease, uint64_t position, uint32_t rows = 1,
                            uint32_t first_block = 0, uint32_t blocks = 0) const;
  v1::AttendItem SequenceItem(const std::string& sequence, uint64_t position,
                              uint32_t rows = 1) const;
  // Rows of `tokens`, which begin at `position`, of one layer; and queries that see them.
  v1::AttendItem AppendItem(const std::string& sequence, uint32_t layer, uint64_t position,
                            const std::vector<uint32_t>& tokens) const;
  grpc::Status Attend(const std::vector<v1::AttendItem>& items, v1::AttendResponse* response,
                      uint32_t layer = 0);

  // --- Sequences ---
  v1::OpenSequenceRequest OpenRequestOf(const std::vector<uint32_t>& tokens,
                                        uint64_t reserve_tokens) const;
  grpc::Status Open(const v1::OpenSequenceRequest& request, v1::OpenSequenceResponse* response);
  // The test fails when it does not open.
  std::string OpenSequence(const std::vector<uint32_t>& tokens, uint64_t reserve_tokens);
  // All layers, over a stream.
  void Append(TestStream& stream, const std::string& sequence, uint64_t position,
              const std::vector<uint32_t>& tokens);
  v1::GetSequenceResponse GetSequence(const std::string& sequence);
  uint32_t Close(const std::string& sequences);
  std::unique_ptr<TestStream> NewStream(v1::Decode::Stub* stub = nullptr);  // Opened.

  // --- Answers ---
  // Whether it is what these tokens, from block `first_block` on, and the item's queries make.
  void ExpectAnswer(const v1::AttendResult& result, const v1::AttendItem& item, uint32_t layer,
                    const std::vector<uint32_t>& tokens, uint32_t first_block = 0) const;
  // Polls what Describe says of decode until it is so; the test times out otherwise.
  template <typename Condition>
  v1::DecodeReport AwaitReport(const Condition& condition) {
    while (true) {
      const v1::DecodeReport report = Describe().decode();
      if (condition(report)) return report;
    }
  }

  // Keys or values of one token in one layer: [kv_heads][dim].
  static std::vector<float> Row(uint32_t token, uint64_t position, uint32_t layer, bool value);

  AttendShape shape_;
  std::unique_ptr<v1::Decode::Stub> decode_;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static std::byte* BytesOf(std::vector<Line>* slot) {
    return reinterpret_cast<std::byte*>(slot->data());
  }
  // A block's bytes, of tokens that begin at `position`.
  std::vector<Line> MakeSlot(absl::Span<const uint32_t> tokens, uint64_t position) const;
};

}  // namespace cairn::node
