#include "cache_node/store/policies/reuse/reuse_requests.h"

#include "common/base/check.h"

namespace cairn::node {

MissedRun* ReuseRequest::RunAt(uint32_t depth) {
  for (MissedRun& run : runs) {
    if (depth >= run.from && depth < run.to) return &run;
  }
  return nullptr;
}

void ReuseRequest::AddGroup(const Made& made) {
  if (groups.size() < kGroupsMax) {
    groups.push_back(made);
    return;
  }
  groups[next_group] = made;
  next_group = (next_group + 1) % kGroupsMax;
}

ReuseRequest* ReuseRequests::Find(UseStamp stamp) {
  if (stamp == last_stamp_ && last_found_ != 0) return BySerial(last_found_);
  const auto it = by_stamp_.find(stamp);
  if (it == by_stamp_.end()) return nullptr;
  last_stamp_ = stamp;
  last_found_ = it->second;
  return BySerial(it->second);
}

ReuseRequest* ReuseRequests::BySerial(uint64_t serial) {
  if (serial == 0 || ring_.empty()) return nullptr;
  const size_t place = serial % kKept;
  if (place >= ring_.size() || ring_[place].serial != serial) return nullptr;
  return &ring_[place];
}

ReuseRequest* ReuseRequests::Begin(UseStamp lookup) {
  const uint64_t serial = ++last_serial_;
  const size_t place = serial % kKept;
  if (place >= ring_.size()) ring_.resize(place + 1);
  ReuseRequest& request = ring_[place];
  if (request.serial != 0) {
    by_stamp_.erase(request.lookup);
    by_stamp_.erase(request.reserve);
    if (last_found_ == request.serial) last_found_ = 0;
  }
  auto runs = std::move(request.runs);
  auto groups = std::move(request.groups);
  runs.clear();
  groups.clear();
  request = ReuseRequest{};
  request.runs = std::move(runs);
  request.groups = std::move(groups);
  request.serial = serial;
  request.lookup = lookup;
  by_stamp_[lookup] = serial;
  last_stamp_ = lookup;
  last_found_ = serial;
  return &request;
}

void ReuseRequests::TieReserve(ReuseRequest* request, UseStamp reserve) {
  CAIRN_CHECK(request != nullptr && request->serial != 0);
  if (request->reserve != 0 && request->reserve != request->lookup) {
    by_stamp_.erase(request->reserve);
    if (last_stamp_ == request->reserve) last_found_ = 0;
  }
  request->reserve = reserve;
  by_stamp_[reserve] = request->serial;
}

uint64_t ReuseRequests::MemoryBytes() const {
  uint64_t bytes = ring_.capacity() * sizeof(ReuseRequest) +
                   by_stamp_.size() * 2 * sizeof(std::pair<UseStamp, uint64_t>);
  for (const ReuseRequest& request : ring_) {
    bytes += request.runs.capacity() * sizeof(MissedRun) +
             request.groups.capacity() * sizeof(ReuseRequest::Made);
  }
  return bytes;
}

}  // namespace cairn::node
