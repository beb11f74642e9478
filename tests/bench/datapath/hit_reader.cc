#include "tests/bench/datapath/hit_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/clock.h"

namespace cairn::bench {
namespace {

constexpr uint32_t kLayers = 32;
constexpr uint64_t kPoolMib = kHeldBlocks * kHitBlockBytes / (uint64_t{1} << 20) + 512;
// One get moves as much as there are places for it.
constexpr size_t kBlocksPerGet = kPlaceBlocks;

}  // namespace

absl::StatusOr<std::unique_ptr<HitReader>> HitReader::Start(Transport transport, bool local) {
  std::unique_ptr<HitReader> reader(new HitReader());
  absl::StatusOr<std::unique_ptr<BenchNode>> node =
      BenchNode::Start({.pool_mib = kPoolMib,
                        .tls = transport == Transport::kTls,
                        .flags = {absl::StrCat("--leased-memory=", kPoolMib, "MiB")}});
  if (!node.ok()) return node.status();
  reader->node_ = *std::move(node);
  ClientOptions options = reader->node_->OptionsFor(transport);
  options.use_local = local;
  reader->client_ = std::make_unique<BenchClient>(std::move(options));
  reader->places_ = MakeBytes(kPlaceBlocks * kHitBlockBytes);
  absl::StatusOr<NamespaceHandle> handle = RegisterLayout(**reader->client_, TwoMebibyteParts());
  if (!handle.ok()) return handle.status();
  reader->name_space_ = std::make_unique<NamespaceHandle>(*std::move(handle));
  if (absl::Status status = reader->PutPrompt(); !status.ok()) return status;
  return reader;
}

absl::Status HitReader::PutPrompt() {
  prompt_ = std::make_unique<BenchPrompt>(**client_, *name_space_, 1, kHeldBlocks);
  return PutAll(**client_, *name_space_, prompt_->prompt(), places_);
}

absl::StatusOr<HitTimes> HitReader::Hit(size_t blocks) {
  const SystemClock clock;
  const absl::Time start = clock.SteadyNow();
  HitTimes times;
  std::optional<ReadLease> lease;  // On all of it, to the end.
  for (size_t first = 0; first < blocks; first += kHeldBlocks) {
    const size_t count = std::min(kHeldBlocks, blocks - first);
    const Prompt prompt = Prompt::FromKeys(std::vector<BlockKey>(
        prompt_->keys().begin(), prompt_->keys().begin() + static_cast<ptrdiff_t>(count)));
    absl::StatusOr<LookupAnswer> answer =
        (*client_)->Lookup(*name_space_, {&prompt, 1}, {.lease_readers = lease ? 0u : 1u});
    if (!answer.ok()) return answer.status();
    if (answer->prompts[0].blocks_present != count) {
      return absl::InternalError("not all of the prompt is there");
    }
    if (answer->lease) lease = std::move(answer->lease);
  }
  CAIRN_CHECK(lease.has_value());
  const auto read = [&](uint32_t first_layer, uint32_t layers) {
    for (size_t first = 0; first < blocks; first += kBlocksPerGet) {
      const size_t at = first % kHeldBlocks;
      const size_t count = std::min(kBlocksPerGet, blocks - first);
      absl::Status status =
          ReadLayers(lease->id(), absl::MakeConstSpan(prompt_->keys()).subspan(at, count),
                     first_layer, layers);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  };
  if (absl::Status status = read(0, 1); !status.ok()) return status;
  times.first_layer_seconds = absl::ToDoubleSeconds(clock.SteadyNow() - start);
  if (absl::Status status = read(1, kLayers - 1); !status.ok()) return status;
  times.all_seconds = absl::ToDoubleSeconds(clock.SteadyNow() - start);
  return times;
}

absl::Status HitReader::ReadLayers(const LeaseId& lease, absl::Span<const BlockKey> keys,
                                   uint32_t first_layer, uint32_t layers) {
  return GetAll(**client_, *name_space_, keys, {{.first_layer = first_layer, .layers = layers}},
                absl::MakeSpan(places_), lease);
}

}  // namespace cairn::bench
