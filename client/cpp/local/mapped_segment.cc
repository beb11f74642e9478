#include "client/cpp/local/mapped_segment.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn {
namespace {

// What is mapped must be there, or reading it is a signal.
std::optional<absl::Span<const uint8_t>> MapForReading(const Descriptor& file, uint64_t bytes) {
  struct stat found {};
  if (fstat(file.get(), &found) != 0 || static_cast<uint64_t>(found.st_size) < bytes) {
    errno = EINVAL;
    return std::nullopt;
  }
  // All pages at once: reads are to find them there.
  void* mapping =
      mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file.get(), /*offset=*/0);
  if (mapping == MAP_FAILED) return std::nullopt;
  return absl::Span<const uint8_t>(static_cast<const uint8_t*>(mapping), bytes);
}

void Unmap(absl::Span<const uint8_t> bytes) {
  if (!bytes.empty()) CAIRN_CHECK(munmap(const_cast<uint8_t*>(bytes.data()), bytes.size()) == 0);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedSegment>> MappedSegment::Map(
    const Shape& shape, const Descriptor& memory, const Descriptor& generations) {
  constexpr uint64_t kBytesMax = uint64_t{1} << 40;
  if (shape.slots == 0 || shape.slot_bytes == 0 || shape.bytes > kBytesMax ||
      shape.slot_bytes > shape.bytes || shape.slots > shape.bytes / shape.slot_bytes) {
    return absl::InternalError(absl::StrCat("a memory segment of ", shape.bytes, " bytes with ",
                                            shape.slots, " slots of ", shape.slot_bytes));
  }
  auto segment = std::shared_ptr<MappedSegment>(new MappedSegment(shape));
  const auto bytes = MapForReading(memory, shape.bytes);
  if (bytes.has_value()) segment->memory_ = *bytes;
  const auto page = MapForReading(generations, shape.slots * sizeof(uint64_t));
  if (page.has_value()) segment->generations_ = *page;
  if (bytes.has_value() && page.has_value()) return segment;
  return absl::ResourceExhaustedError(absl::StrCat(
      "a memory segment of ", shape.bytes, " bytes cannot be mapped: ", std::strerror(errno)));
}

MappedSegment::~MappedSegment() {
  Unmap(memory_);
  Unmap(generations_);
}

absl::Span<const uint8_t> MappedSegment::Slot(uint32_t slot) const {
  CAIRN_CHECK(HasSlot(slot));
  return memory_.subspan(slot * shape_.slot_bytes, shape_.slot_bytes);
}

uint64_t MappedSegment::Generation(uint32_t slot) const {
  CAIRN_CHECK(HasSlot(slot));
  std::atomic_thread_fence(std::memory_order_acquire);
  // Only loads: the mapping is not writable.
  auto* all = reinterpret_cast<uint64_t*>(const_cast<uint8_t*>(generations_.data()));
  return std::atomic_ref<uint64_t>(all[slot]).load(std::memory_order_relaxed);
}

}  // namespace cairn
