// SilentLogger: where RocksDB's own log goes, which is nowhere.
//
// Debian's RocksDB asserts that nothing is written to a file after an error of it, and its file
// logger does just that: on a full disk a line of the log would end the process. What went wrong is
// in the statuses, and in the tier's health. Thread-safe.
#pragma once

#include <cstdarg>

#include "rocksdb/env.h"

namespace cairn::node {

class SilentLogger final : public rocksdb::Logger {
 public:
  SilentLogger() : Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}

  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

}  // namespace cairn::node
