#include "client/cpp/read_lease.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/node_link.h"
#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

// A destructor does not wait longer for a node that may be gone.
constexpr absl::Duration kEndQuietlyTimeout = absl::Seconds(1);

}  // namespace

ReadLease::ReadLease(NodeLink* link, const LeaseId& id, uint32_t reader, size_t prompts,
                     absl::Duration ttl)
    : link_(link), id_(id), reader_(reader), prompts_(prompts), ttl_(ttl) {}

ReadLease::~ReadLease() { EndQuietly(); }

ReadLease::ReadLease(ReadLease&& other) noexcept
    : link_(std::exchange(other.link_, nullptr)),
      id_(other.id_),
      reader_(other.reader_),
      prompts_(other.prompts_),
      ttl_(other.ttl_),
      ended_(other.ended_) {}

ReadLease& ReadLease::operator=(ReadLease&& other) noexcept {
  if (this == &other) return *this;
  EndQuietly();
  link_ = std::exchange(other.link_, nullptr);
  id_ = other.id_;
  reader_ = other.reader_;
  prompts_ = other.prompts_;
  ttl_ = other.ttl_;
  ended_ = other.ended_;
  return *this;
}

absl::StatusOr<absl::Duration> ReadLease::Renew(absl::Duration ttl) {
  CAIRN_CHECK(link_ != nullptr);
  v1::RenewLeaseRequest request;
  request.set_lease(std::string(id_.view()));
  request.set_reader(reader_);
  request.set_ttl_ms(MillisecondsOf(ttl, UINT32_MAX));
  v1::RenewLeaseResponse response;
  const absl::Status status =
      link_->Call(&v1::CacheNode::Stub::RenewLease, request, {}, {}, &response);
  if (!status.ok()) return status;
  ttl_ = absl::Milliseconds(response.ttl_ms());
  return ttl_;
}

absl::StatusOr<bool> ReadLease::End(absl::Span<const uint32_t> usable_blocks,
                                    absl::Span<const MismatchedSegment> mismatches) {
  CAIRN_CHECK(link_ != nullptr);
  if (usable_blocks.size() != prompts_) {
    return absl::InvalidArgumentError(absl::StrCat("usable_blocks: ", usable_blocks.size(),
                                                   " numbers for ", prompts_, " prompts"));
  }
  v1::EndLeaseRequest request;
  request.set_lease(std::string(id_.view()));
  request.set_reader(reader_);
  request.mutable_usable_blocks()->Add(usable_blocks.begin(), usable_blocks.end());
  for (const MismatchedSegment& mismatch :
       mismatches.first(std::min<size_t>(mismatches.size(), kMismatchesPerEndMax))) {
    v1::SegmentRef* segment = request.add_mismatches();
    segment->set_key(std::string(mismatch.key.view()));
    segment->set_group(mismatch.id.group);
    segment->set_slice(mismatch.id.slice);
    segment->set_layer(mismatch.id.layer);
  }
  v1::EndLeaseResponse response;
  const absl::Status status =
      link_->Call(&v1::CacheNode::Stub::EndLease, request, {}, {}, &response);
  // A lease that the node does not know any more is over as well.
  if (status.ok() || absl::IsAborted(status)) ended_ = true;
  if (!status.ok()) return status;
  return response.complete();
}

void ReadLease::EndQuietly() {
  if (link_ == nullptr || ended_) return;
  v1::EndLeaseRequest request;
  request.set_lease(std::string(id_.view()));
  request.set_reader(reader_);
  for (size_t i = 0; i < prompts_; ++i) request.add_usable_blocks(0);
  v1::EndLeaseResponse response;
  // Best effort: the share's time to live does the rest.
  (void)link_->CallOnce(&v1::CacheNode::Stub::EndLease, request, kEndQuietlyTimeout, &response);
}

}  // namespace cairn
