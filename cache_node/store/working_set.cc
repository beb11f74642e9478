#include "cache_node/store/working_set.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace cairn::node {
namespace {

// Uses between renumberings, for each sample.
constexpr size_t kPlacesPerSample = 2;
constexpr int kHalvingsMax = 48;

}  // namespace

WorkingSet::WorkingSet(const Options& options)
    : options_(options),
      samples_(options.samples_max * kPlacesPerSample),
      sums_(samples_.size() + 1, 0),
      hits_(options.sizes_bytes.size(), 0) {
  CAIRN_CHECK(options.samples_max > 1 && options.samples_max < (size_t{1} << 30));
  CAIRN_CHECK(!options.sizes_bytes.empty());
  CAIRN_CHECK(std::is_sorted(options.sizes_bytes.begin(), options.sizes_bytes.end()));
  places_.reserve(options.samples_max + 1);
}

double WorkingSet::rate() const { return std::ldexp(1.0, -halvings_); }

bool WorkingSet::Ask(uint64_t key, uint64_t bytes, Prompt* prompt) {
  CAIRN_CHECK(bytes > 0);
  asked_ += 1;
  if (options_.half_life_blocks != 0 && ++asked_since_halving_ >= options_.half_life_blocks) {
    HalveCounts();
  }
  if (halvings_ > 0 && key >> (64 - halvings_) != 0) return false;
  const double weight = std::ldexp(1.0, halvings_);
  const auto scaled = static_cast<double>(bytes) * weight;
  weighed_ += weight;
  if (const auto known = places_.find(key); known != places_.end()) {
    const size_t place = known->second;
    // Its prompt's deeper blocks were all used before it, until just now.
    const auto newer = static_cast<double>(bytes_ - BytesUpTo(place)) * weight - prompt->own_bytes_;
    const double needed = newer + static_cast<double>(bytes);
    for (size_t i = 0; i < hits_.size(); ++i) {
      if (needed <= static_cast<double>(options_.sizes_bytes[i])) hits_[i] += weight;
    }
    Take(place);
  }
  Put(key, bytes);
  prompt->own_bytes_ += scaled;
  // The rest of the prompt may still be among the oldest.
  const double largest = static_cast<double>(options_.sizes_bytes.back()) + prompt->own_bytes_;
  while (static_cast<double>(bytes_ - samples_[oldest_].bytes) * weight > largest) DropOldest();
  if (places_.size() > options_.samples_max && halvings_ < kHalvingsMax) HalveSample();
  return true;
}

double WorkingSet::HitRate(size_t size) const {
  if (asked_ == 0) return 0;
  return std::clamp((hits_[size] + asked_ - weighed_) / asked_, 0.0, 1.0);
}

void WorkingSet::Put(uint64_t key, uint64_t bytes) {
  if (next_ == samples_.size()) Renumber();
  CAIRN_CHECK(next_ < samples_.size());
  samples_[next_] = {key, bytes};
  AddAt(next_, bytes);
  bytes_ += bytes;
  CAIRN_CHECK(places_.emplace(key, static_cast<uint32_t>(next_)).second);
  ++next_;
  while (samples_[oldest_].bytes == 0) ++oldest_;
}

void WorkingSet::Take(size_t place) {
  Sample& sample = samples_[place];
  CAIRN_CHECK(sample.bytes > 0 && places_.erase(sample.key) == 1);
  AddAt(place, -sample.bytes);
  bytes_ -= sample.bytes;
  sample = {};
}

// REQUIRES: it is not the only one.
void WorkingSet::DropOldest() {
  CAIRN_CHECK(places_.size() > 1);
  Take(oldest_);
  while (samples_[oldest_].bytes == 0) ++oldest_;
}

void WorkingSet::HalveSample() {
  ++halvings_;
  for (Sample& sample : samples_) {
    if (sample.bytes > 0 && sample.key >> (64 - halvings_) != 0) sample = {};
  }
  Renumber();
}

// Brings the samples together at the lowest places, in their order.
void WorkingSet::Renumber() {
  places_.clear();
  std::fill(sums_.begin(), sums_.end(), 0);
  bytes_ = 0;
  size_t end = 0;
  for (size_t place = 0; place < samples_.size(); ++place) {
    if (samples_[place].bytes == 0) continue;
    const Sample sample = samples_[place];
    samples_[place] = {};
    samples_[end] = sample;
    places_.emplace(sample.key, static_cast<uint32_t>(end));
    AddAt(end, sample.bytes);
    bytes_ += sample.bytes;
    ++end;
  }
  oldest_ = 0;
  next_ = end;
}

void WorkingSet::HalveCounts() {
  asked_since_halving_ = 0;
  asked_ /= 2;
  weighed_ /= 2;
  for (double& hits : hits_) hits /= 2;
}

void WorkingSet::AddAt(size_t place, uint64_t bytes) {
  for (size_t i = place + 1; i < sums_.size(); i += i & -i) sums_[i] += bytes;
}

uint64_t WorkingSet::BytesUpTo(size_t place) const {
  uint64_t bytes = 0;
  for (size_t i = place + 1; i > 0; i -= i & -i) bytes += sums_[i];
  return bytes;
}

}  // namespace cairn::node
