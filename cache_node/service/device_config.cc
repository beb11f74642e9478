#include "cache_node/service/device_config.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr int kOrdinalMax = 1023;
constexpr ByteSize kBytesMin = ByteSize::MiB(1);
constexpr ByteSize kBytesMax = ByteSize::GiB(1 << 10);
constexpr size_t kShownMax = 64;

std::optional<int> OrdinalIn(absl::string_view device) {
  int ordinal = 0;
  if (!absl::ConsumePrefix(&device, "cuda:") || !absl::SimpleAtoi(device, &ordinal)) {
    return std::nullopt;
  }
  return ordinal < 0 || ordinal > kOrdinalMax ? std::nullopt : std::optional<int>(ordinal);
}

}  // namespace

int DeviceConfig::CudaOrdinal() const {
  const std::optional<int> ordinal = OrdinalIn(device);
  CAIRN_CHECK(ordinal.has_value());
  return *ordinal;
}

void DeviceConfig::Check(ConfigErrors& errors) const {
  errors.Check(!on() || emulated() || OrdinalIn(device).has_value(), "device",
               device.substr(0, kShownMax),
               absl::StrCat("none, emulated, or cuda:N with N from 0 to ", kOrdinalMax));
  errors.CheckRange("device-index-memory", index_memory, ByteSize::MiB(1), ByteSize::GiB(64));
  if (!on()) {
    errors.Check(bytes.bytes() == 0, "device-bytes", bytes.ToString(),
                 "left out without --device, the device whose memory it is");
    return;
  }
  errors.Check(bytes >= kBytesMin && bytes <= kBytesMax, "device-bytes", bytes.ToString(),
               absl::StrCat("from ", kBytesMin.ToString(), " to ", kBytesMax.ToString(),
                            ": what blocks may take of the memory of --device"));
}

DeviceOptions DeviceConfig::StoreOptions() const {
  CAIRN_CHECK(on());
  DeviceOptions options;
  options.index_bytes_max = index_memory.bytes();
  return options;
}

}  // namespace cairn::node
