// LocalConfig: what a node is told about readers and writers of its own host. A plain value.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/server/byte_size.h"
#include "common/server/config_errors.h"

namespace cairn::node {

struct LocalConfig {
  // Value of `socket` for an abstract name that nobody else has.
  static constexpr absl::string_view kAuto = "auto";
  // What a connection takes in the kernel and here, without staging memory.
  static constexpr ByteSize kConnectionBytes = ByteSize::KiB(64);

  std::string socket = std::string(kAuto);  // Empty: there is none.
  int connections_max = 128;
  ByteSize staging_memory = ByteSize::MiB(16);
  // From the moment that memory is wanted back to the cut.
  absl::Duration return_within = absl::Seconds(5);

  bool on() const { return !socket.empty(); }
  void Check(ConfigErrors& errors) const;
  // Pages of generations, of a pool of so many bytes.
  static ByteSize GenerationBytes(ByteSize host_memory);
};

}  // namespace cairn::node
