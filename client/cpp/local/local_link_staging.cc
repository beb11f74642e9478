// LocalLink: staging memory, through which writes go.
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/local/local_link.h"
#include "common/base/check.h"
#include "common/local/local_limits.h"

namespace cairn {
namespace {

absl::Status None(absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("no local path to the node: ", why));
}

}  // namespace

LocalLink::StagingMemory::~StagingMemory() {
  if (!bytes.empty()) CAIRN_CHECK(munmap(bytes.data(), bytes.size()) == 0);
}

LocalLink::Staging::Staging(Staging&& other) noexcept
    : link_(std::exchange(other.link_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}

LocalLink::Staging& LocalLink::Staging::operator=(Staging&& other) noexcept {
  std::swap(link_, other.link_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

LocalLink::Staging::~Staging() {
  if (link_ == nullptr) return;
  absl::MutexLock lock(&link_->mutex_);
  link_->staging_taken_ = false;
}

absl::StatusOr<LocalLink::Staging> LocalLink::TakeStaging(uint64_t bytes, absl::Time deadline) {
  const Turn turn(this, deadline);
  if (!turn) return None("others use it");
  {
    absl::MutexLock lock(&mutex_);
    if (staging_taken_) return None("another writer has the staging memory");
    const bool idle = clock_->SteadyNow() - staging_used_ > kLocalStagingIdle / 2;
    if (!socket_ || staging_connection_ != connection_ || idle) staging_ = nullptr;
  }
  if (staging_ == nullptr || staging_->bytes.size() < bytes) {
    if (absl::Status mapped = MapStaging(bytes, deadline); !mapped.ok()) return mapped;
  }
  staging_used_ = clock_->SteadyNow();
  absl::MutexLock lock(&mutex_);
  staging_taken_ = true;
  return Staging(this, staging_->bytes);
}

absl::Status LocalLink::MapStaging(uint64_t bytes, absl::Time deadline) {
  staging_ = nullptr;
  v1::LocalRequest request;
  request.mutable_stage()->set_bytes(bytes);
  v1::LocalAnswer answer;
  std::vector<Descriptor> descriptors;
  absl::Status status = ExchangeAgain(request, deadline, &answer, &descriptors);
  if (!status.ok()) return status;
  struct stat found {};
  if (!answer.has_staged() || descriptors.size() != 1 || answer.staged().bytes() < bytes ||
      fstat(descriptors[0].get(), &found) != 0 ||
      static_cast<uint64_t>(found.st_size) < answer.staged().bytes()) {
    Drop();
    Failed();
    return None("staging memory that is none");
  }
  const size_t size = answer.staged().bytes();
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      descriptors[0].get(), /*offset=*/0);
  if (mapped == MAP_FAILED) return None("staging memory cannot be mapped");
  staging_ = std::make_unique<StagingMemory>(absl::MakeSpan(static_cast<uint8_t*>(mapped), size));
  staging_connection_ = connection_;
  return absl::OkStatus();
}

absl::StatusOr<v1::LocalLanded> LocalLink::Put(const v1::LocalPut& put, absl::Time deadline) {
  const Turn turn(this, deadline);
  if (!turn) return None("others use it");
  // A new connection would have other staging memory.
  if (!socket_ || staging_connection_ != connection_) return None("the connection is over");
  v1::LocalRequest request;
  *request.mutable_put() = put;
  v1::LocalAnswer answer;
  std::vector<Descriptor> descriptors;
  absl::Status status = Exchange(request, deadline, &answer, &descriptors);
  if (!status.ok()) {
    // The node has taken the staging memory back.
    if (absl::IsFailedPrecondition(status)) staging_connection_.clear();
    return status;
  }
  staging_used_ = clock_->SteadyNow();
  if (!answer.has_landed()) {
    Drop();
    return None("another answer than was asked for");
  }
  return answer.landed();
}

}  // namespace cairn
