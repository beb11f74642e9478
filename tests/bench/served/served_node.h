// ServedNode: a node in this process that serves attention over prompts of one layer, and how
// queries reach it.
//
// KV is of 8 heads of 128 in bfloat16, blocks of 16 tokens: 4 KiB a token. Queries are of 32 heads,
// or of 8.
// Not thread-safe. Borrowed by what it opens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache_node/service/node.h"
#include "client/cpp/cache_node_client.h"
#include "client/cpp/decode/decode_client.h"
#include "tests/bench/datapath/bench_blocks.h"

namespace cairn::bench {

inline constexpr uint32_t kServedBlockTokens = 16;
inline constexpr uint32_t kServedKvHeads = 8;
inline constexpr uint32_t kServedQueryHeads = 32;  // Four a KV head,
inline constexpr uint32_t kServedFewHeads = 8;     // or one.
inline constexpr uint32_t kServedHeadDim = 128;

class ServedNode {
 public:
  enum class Transport { kUnix, kTcp };

  static absl::StatusOr<std::unique_ptr<ServedNode>> Start(uint64_t pool_mib, int threads);
  ~ServedNode();

  // Puts a prompt of whole blocks that shares none with another number's.
  absl::Status Put(uint32_t number, size_t blocks);
  // The first blocks of a prompt that was put, held in the pool as long as the pins live.
  absl::StatusOr<std::vector<node::BlockPin>> Pin(uint32_t number, size_t blocks);
  // A sequence that is only read, over the first blocks.
  absl::StatusOr<SequenceId> Open(uint32_t number, uint32_t blocks);
  void Close(absl::Span<const SequenceId> sequences);

  // Fetches the first blocks over the wire into `bytes`, verified.
  absl::Status Fetch(uint32_t number, size_t blocks, absl::Span<uint8_t> bytes);

  std::unique_ptr<DecodeStream> OpenStream(Transport transport, CallQueue* queue);
  // A client with connections of its own, as each worker has them, over the Unix socket.
  std::unique_ptr<DecodeClient> Connect();
  std::unique_ptr<DecodeStream> OpenStream(DecodeClient* client, CallQueue* queue);
  // A message that asks nothing and is answered by nothing, over the Unix socket.
  absl::Status CallEmpty();

  const Clock& clock() const { return *parts_clock_; }

 private:
  ServedNode() = default;
  std::string folder_;
  std::unique_ptr<node::Node> node_;
  SystemClientParts parts_;
  const Clock* parts_clock_ = nullptr;
  std::unique_ptr<CacheNodeClient> cache_;  // Over TCP, without the memory of this host.
  std::unique_ptr<DecodeClient> unix_decode_;
  std::unique_ptr<DecodeClient> tcp_decode_;
  std::unique_ptr<v1::Decode::Stub> calls_;  // Over the Unix socket.
  std::unique_ptr<NamespaceHandle> name_space_;
  std::vector<v1::AttentionParameters> parameters_;
  std::vector<std::unique_ptr<BenchPrompt>> prompts_;  // By number; null: none.
};

// One row a sequence, at the end of so many tokens, of query number `seed` on. `query_heads` is one
// of the two above.
v1::DecodeRequest StepOver(absl::Span<const SequenceId> sequences, uint64_t tokens, uint32_t seed,
                           uint32_t query_heads = kServedQueryHeads);
// Finite numbers in bfloat16, as models have their queries, normally distributed.
std::vector<uint16_t> QueryRow(uint32_t seed, uint32_t query_heads = kServedQueryHeads);

}  // namespace cairn::bench
