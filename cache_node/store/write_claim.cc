#include "cache_node/store/write_claim.h"

#include <cstring>

#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "kernels/copy_digest.h"

namespace cairn::node {
namespace {

// Shorter ones are in the cache still when they are hashed.
constexpr size_t kStreamSegmentBytesMin = 16 << 10;

using NextRun = absl::FunctionRef<absl::Span<const uint8_t>(size_t)>;

// `take` gets each run and where it goes.
template <typename Take>
void ForEachRun(absl::Span<uint8_t> to, NextRun next_run, const Take& take) {
  for (size_t done = 0; done < to.size();) {
    const absl::Span<const uint8_t> run = next_run(to.size() - done);
    CAIRN_CHECK(!run.empty() && run.size() <= to.size() - done);
    take(to.data() + done, run);
    done += run.size();
  }
}

}  // namespace

void WriteClaim::Fill(NextRun next_run) {
  CAIRN_CHECK(entry_ != nullptr && landed_.empty());
  const size_t each = whole_ ? destination_.size() / segments_ : 0;
  if (each < kStreamSegmentBytesMin) {
    ForEachRun(destination_, next_run, [](uint8_t* to, absl::Span<const uint8_t> run) {
      std::memcpy(to, run.data(), run.size());
    });
    return;
  }
  landed_.reserve(segments_);
  SegmentId id = first_;
  for (size_t i = 0; i < segments_; ++i, ++id.layer) {
    kernels::StreamingCopyHasher copier(SegmentDigestSeed(key_, id));
    ForEachRun(destination_.subspan(i * each, each), next_run,
               [&copier](uint8_t* to, absl::Span<const uint8_t> run) {
                 copier.Copy(to, run.data(), run.size());
               });
    landed_.push_back(copier.Digest());
  }
}

}  // namespace cairn::node
