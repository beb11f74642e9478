#include "client/cpp/local/held_places.h"

#include <algorithm>
#include <utility>

#include "common/local/local_limits.h"
#include "common/rpc/id_conversion.h"

namespace cairn {

HeldPlaces::HeldPlaces(HeldPlaces&& other) noexcept
    : link_(std::exchange(other.link_, nullptr)),
      places_(std::move(other.places_)),
      shares_(std::exchange(other.shares_, {})) {}

HeldPlaces& HeldPlaces::operator=(HeldPlaces&& other) noexcept {
  std::swap(link_, other.link_);
  std::swap(places_, other.places_);
  std::swap(shares_, other.shares_);
  return *this;
}

absl::StatusOr<HeldPlaces> HeldPlaces::Ask(LocalLink* link, const Fingerprint& fingerprint,
                                           absl::Span<const BlockKey> keys, const PlaceWish& wish) {
  HeldPlaces held(link);
  held.places_.reserve(keys.size());
  while (held.places_.size() < keys.size()) {
    const auto rest = keys.subspan(held.places_.size());
    const auto chunk = rest.first(std::min<size_t>(rest.size(), kLocalKeysPerReadMax));
    if (absl::Status status = held.AskChunk(fingerprint, chunk, wish); !status.ok()) return status;
  }
  return held;
}

absl::Status HeldPlaces::AskChunk(const Fingerprint& fingerprint, absl::Span<const BlockKey> keys,
                                  const PlaceWish& wish) {
  const size_t first = places_.size();
  v1::LocalRead request;
  request.set_fingerprint(std::string(fingerprint.view()));
  request.set_each(wish.each);
  request.set_hold(wish.hold);
  request.set_reader(wish.reader);
  if (wish.lease.has_value()) request.set_lease(std::string(wish.lease->view()));
  std::vector<size_t> asked(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) asked[i] = i;
  places_.resize(first + keys.size());
  // One answer holds only so much: what is there and was not answered is asked for again.
  while (!asked.empty()) {
    std::vector<BlockKey> wanted;
    for (const size_t i : asked) wanted.push_back(keys[i]);
    request.set_keys(KeysToProto(wanted));
    absl::StatusOr<LocalLink::Places> answer = link_->Read(request, wish.deadline);
    if (!answer.ok()) return answer.status();
    if (request.lease().empty() && answer->lease.has_value()) {
      shares_.push_back({*answer->lease, static_cast<uint32_t>(first)});
      request.set_lease(std::string(answer->lease->view()));
      request.set_reader(0);
      request.set_hold(false);
    }
    std::vector<size_t> again;
    for (size_t i = 0; i < asked.size(); ++i) {
      LocalLink::Place& place = answer->places[i];
      if (place.state == v1::BLOCK_STATE_HOST) again.push_back(asked[i]);
      places_[first + asked[i]] = std::move(place);
    }
    if (again.size() == asked.size() || request.lease().empty()) break;
    asked = std::move(again);
  }
  return absl::OkStatus();
}

void HeldPlaces::End(uint32_t usable_blocks) {
  places_.clear();
  for (const Share& share : std::exchange(shares_, {})) {
    const uint32_t usable = usable_blocks > share.first ? usable_blocks - share.first : 0;
    link_->End(share.lease, usable);
  }
}

}  // namespace cairn
