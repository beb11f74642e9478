// JsonReport: what one run of a suite measured, as one flat JSON object in order of insertion.
//
// Not thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn::bench {

class JsonReport {
 public:
  // Keys are unique within a report (CHECKed) and say their unit at the end. `value` is finite
  // (CHECKed): JSON knows no other number.
  void Add(absl::string_view key, double value);
  void Add(absl::string_view key, absl::string_view value);

  // The number under `key`. REQUIRES: it was added as a number.
  double Number(absl::string_view key) const;

  // One line a key, so that people can read it too.
  std::string ToJson() const;

  // Replaces the file at `path` with ToJson(); the status names the path and the system's reason.
  absl::Status WriteTo(const std::string& path) const;

 private:
  void AddRaw(absl::string_view key, std::string json);

  std::vector<std::pair<std::string, std::string>> fields_;  // key -> value as JSON
};

}  // namespace cairn::bench
