// Staleness: what the index promised against what the caches delivered.
//
// Predicted minus delivered cached tokens is the sign of an index that no longer tells the truth:
// delays of seconds hardly show, records lost for good do. A value.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cairn::router {

class Staleness {
 public:
  static constexpr double kDecay = 0.98;
  // The alarm: more than this share of recently predicted tokens was not delivered.
  static constexpr double kAlarmShare = 0.2;
  // No alarm before so many tokens were predicted, and as many that were delivered as predicted
  // stand beside those seen where few were seen (CautiousShare).
  static constexpr uint64_t kPredictedTokensLeast = 65536;

  void Add(uint64_t predicted_tokens, uint64_t delivered_tokens) {
    predicted_tokens_ += predicted_tokens;
    delivered_tokens_ += delivered_tokens;
    recent_predicted_ = recent_predicted_ * kDecay + static_cast<double>(predicted_tokens);
    recent_delivered_ = recent_delivered_ * kDecay + static_cast<double>(delivered_tokens);
  }

  uint64_t predicted_tokens() const { return predicted_tokens_; }
  uint64_t delivered_tokens() const { return delivered_tokens_; }

  // Of what was predicted of late, the share that was not delivered; negative when more was.
  double RecentShare() const {
    if (recent_predicted_ <= 0) return 0;
    return (recent_predicted_ - recent_delivered_) / recent_predicted_;
  }
  // The same between 0 and 1, and near 0 before much was seen: one request says little.
  double CautiousShare() const {
    const double missing = std::max(0.0, recent_predicted_ - recent_delivered_);
    return missing / (recent_predicted_ + static_cast<double>(kPredictedTokensLeast));
  }
  bool Alarm() const {
    return predicted_tokens_ >= kPredictedTokensLeast && RecentShare() > kAlarmShare;
  }

 private:
  uint64_t predicted_tokens_ = 0;
  uint64_t delivered_tokens_ = 0;
  double recent_predicted_ = 0;
  double recent_delivered_ = 0;
};

}  // namespace cairn::router
