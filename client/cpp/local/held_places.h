// HeldPlaces: where blocks lie in the node's memory, and the shares that keep them there.
//
// Move-only. Ends on destruction what the node took for it; a share of a lease that the caller had
// stays the caller's. Not thread-safe. The link outlives it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/local/local_link.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"

namespace cairn {

struct PlaceWish {
  // A lease that has the blocks; without one the node takes one.
  std::optional<LeaseId> lease = std::nullopt;
  uint32_t reader = 0;
  // With a lease: its share loses its time to live.
  bool hold = false;
  // Without one: each key by itself, not only consecutive ones from the start.
  bool each = false;
  absl::Time deadline = absl::InfiniteFuture();  // As of LocalLink::Deadline.
};

class HeldPlaces {
 public:
  // As many requests as it takes. UNAVAILABLE where there is no local path; otherwise as the node
  // says. Keys without a place have the state why not.
  static absl::StatusOr<HeldPlaces> Ask(LocalLink* link, const Fingerprint& fingerprint,
                                        absl::Span<const BlockKey> keys, const PlaceWish& wish);
  ~HeldPlaces() { End(0); }

  HeldPlaces(HeldPlaces&& other) noexcept;
  HeldPlaces& operator=(HeldPlaces&& other) noexcept;

  // One a key.
  const std::vector<LocalLink::Place>& places() const { return places_; }
  LocalLink* link() const { return link_; }
  // So many leading blocks were of use. Forgets the places.
  void End(uint32_t usable_blocks);

 private:
  struct Share {
    LeaseId lease;
    uint32_t first = 0;  // Index of its first key.
  };

  explicit HeldPlaces(LocalLink* link) : link_(link) {}
  absl::Status AskChunk(const Fingerprint& fingerprint, absl::Span<const BlockKey> keys,
                        const PlaceWish& wish);

  LocalLink* link_;  // Null when moved from.
  std::vector<LocalLink::Place> places_;
  std::vector<Share> shares_;
};

}  // namespace cairn
