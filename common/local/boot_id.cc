#include "common/local/boot_id.h"

#include <fstream>

namespace cairn {

std::string BootId() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

}  // namespace cairn
