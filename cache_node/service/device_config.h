// DeviceConfig: what a cache node is told of its device. The defaults are those of the flags.
//
// A plain value, part of NodeConfig.
#pragma once

#include <string>

#include "cache_node/store/device_options.h"
#include "common/server/byte_size.h"
#include "common/server/config_errors.h"

namespace cairn::node {

struct DeviceConfig {
  std::string device = "none";  // Or "emulated", or "cuda:N".
  ByteSize bytes;               // Of its memory, for blocks; to be said.
  ByteSize index_memory = ByteSize::MiB(64);

  bool on() const { return device != "none"; }
  // Its memory is the process's own.
  bool emulated() const { return device == "emulated"; }
  // REQUIRES: on(), not emulated(), and Check had nothing to say.
  int CudaOrdinal() const;

  void Check(ConfigErrors& errors) const;
  // For the store. REQUIRES: on().
  DeviceOptions StoreOptions() const;
};

}  // namespace cairn::node
