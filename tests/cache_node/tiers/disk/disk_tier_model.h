// DiskTierModel: what DiskTierDrivers were answered, over any number of lives of one tier, and
// whether what a start finds agrees.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::testing {

class DiskTierModel {
 public:
  // A line of a driver; the test fails when it is none.
  void Learn(const std::string& line);

  // Fails the test where a start may not find just this.
  void Check(const std::vector<node::DiskTier::RecoveredFile>& found) const;
  // What was found decides what was open to doubt.
  void Settle(const std::vector<node::DiskTier::RecoveredFile>& found);

  // The number of the file's first record.
  uint64_t FirstOf(uint64_t file) const { return files_.at(file).first; }
  // The highest fence that was answered.
  uint64_t fenced() const { return fenced_; }
  size_t files() const { return files_.size(); }

 private:
  struct File {
    uint64_t first = 0;
    uint64_t count = 0;
    bool there = false;  // For sure.
    std::set<uint32_t> dead;
  };

  std::map<uint64_t, File> files_;
  std::set<uint64_t> gone_;
  uint64_t fenced_ = 0;
};

}  // namespace cairn::testing
