// SpillWriter: moves blocks from host memory into files of the disk tier.
//
// A mover: one thread calls Step; it knows neither threads nor clocks. Blocks are grouped: a file
// is finished when it is large enough, when its first block has waited long enough, or when the
// store gives no more until some are reported. Names of namespaces are made durable before their
// blocks. A file that fails is given up whole: its blocks stay in host memory, and are written when
// they are used again, or when the tier serves again (HealthProbe).
//
// Borrows tier and store, which must outlive it. Destroyed with a file open, it gives that up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

class SpillWriter {
 public:
  struct Options {
    uint64_t file_bytes_max = uint64_t{256} << 20;
    absl::Duration file_age_max = absl::Seconds(1);
    uint64_t writer = 0;  // Incarnation, for the records.
  };

  SpillWriter(const Options& options, DiskTier* tier, BlockStore* store);
  ~SpillWriter();

  // Does a bounded part: takes some blocks into the open file, or finishes it. `steady` orders
  // ages, `wall` is written into records. True: there is more to do now. False: wait for
  // Signals::spills, at most until due().
  bool Step(absl::Time steady, absl::Time wall);
  // When the open file is old enough; InfiniteFuture without one.
  absl::Time due() const;
  // Finishes the open file whatever its age, as at the end of a drain.
  void Flush();

 private:
  static constexpr size_t kBlocksPerTake = 64;
  static constexpr size_t kNamespacesPerStep = 64;

  bool SaveNamespaces();
  absl::Status AddBlock(const SpillTask& task, absl::Time wall);
  // The slot's bytes with zeros where no part is; `digests` 0 there.
  absl::Span<const uint8_t> PresentBytes(const SpillTask& task, std::vector<uint64_t>* digests);
  void Finish();
  void GiveUp();

  const Options options_;
  DiskTier* const tier_;
  BlockStore* const store_;
  std::unique_ptr<DiskFileBuilder> file_;
  std::vector<SpillTask> tasks_;
  std::vector<PlacedBlock> placed_;
  absl::Time opened_;
  std::vector<uint8_t> scratch_;
};

}  // namespace cairn::node
