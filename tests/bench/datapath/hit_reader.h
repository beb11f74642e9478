// HitReader: reads prompts that a node holds as an engine does on a hit: looks them up under a
// lease, loads layer 0 of all blocks first, so that the computation can begin, then the other
// layers, and ends the lease.
//
// Owns the node. For one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/datapath/bench_blocks.h"
#include "tests/bench/datapath/bench_node.h"

namespace cairn::bench {

inline constexpr uint64_t kHitBlockBytes = uint64_t{2} << 20;
inline constexpr size_t kHeldBlocks = 2048;
inline constexpr size_t kPlaceBlocks = 256;

struct HitTimes {
  double first_layer_seconds = 0;  // From the lookup on.
  double all_seconds = 0;
};

class HitReader {
 public:
  // Starts a node and puts what it is to hold. `local`: through its memory, as on one host.
  static absl::StatusOr<std::unique_ptr<HitReader>> Start(Transport transport, bool local);

  // A prompt of `blocks`; of one longer than kHeldBlocks the same ones again. Not OK unless every
  // byte came and was verified.
  absl::StatusOr<HitTimes> Hit(size_t blocks);

 private:
  HitReader() = default;
  absl::Status PutPrompt();
  absl::Status ReadLayers(const LeaseId& lease, absl::Span<const BlockKey> keys,
                          uint32_t first_layer, uint32_t layers);

  std::unique_ptr<BenchNode> node_;
  std::unique_ptr<BenchClient> client_;
  std::unique_ptr<NamespaceHandle> name_space_;
  std::unique_ptr<BenchPrompt> prompt_;
  std::vector<uint8_t> places_;
};

}  // namespace cairn::bench
