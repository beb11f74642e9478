// BallastFile: room on the disk that is given up when there is no other, so that a full disk still
// takes the few bytes by which something is dropped or declared dead. Thread-safe, blocks on the
// disk.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace cairn::node {

class BallastFile {
 public:
  BallastFile(std::string path, uint64_t bytes);

  // Takes the room, unless it has it. RESOURCE_EXHAUSTED when there is none.
  absl::Status Fill();
  // Whether there was room to give up.
  bool Release();

 private:
  const std::string path_;
  const uint64_t bytes_;
};

}  // namespace cairn::node
