#include "tests/sim/worker/prefix_fetch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cairn/v1/cache_node.pb.h"
#include "common/base/check.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/prompt_conversion.h"

namespace cairn::sim {
namespace {

constexpr absl::Duration kLookupTimeout = absl::Seconds(1);
constexpr absl::Duration kGetTimeout = absl::Seconds(3);
constexpr absl::Duration kEndTimeout = absl::Seconds(1);
// For blocks that another writer has in progress.
constexpr uint32_t kWaitMs = 400;
constexpr uint32_t kByTokensChance = 3000;
// A client that forgets its lease, as one that crashed.
constexpr uint32_t kForgetsChance = 200;

}  // namespace

void PrefixFetch::Run(size_t end, Done done) {
  done_ = std::move(done);
  fetch_status_ = absl::OkStatus();
  CAIRN_CHECK(usable_blocks_ < end && end <= context_->prompt->prompt().block_count());
  const size_t count = end - usable_blocks_;
  const Prompt& prompt = context_->prompt->prompt();
  const NamespaceHandle& name_space = context_->prompt->name_space();
  v1::LookupRequest request;
  request.set_fingerprint(std::string(name_space.fingerprint().view()));
  if (count == prompt.block_count() && context_->side.dice->Chance(kByTokensChance)) {
    *request.add_prompts() = PromptToProto(prompt.regions(), prompt.extras());
  } else {
    request.add_prompts()->set_keys(
        KeysToProto(absl::MakeConstSpan(prompt.keys()).subspan(usable_blocks_, count)));
  }
  request.mutable_lease()->set_readers(context_->ranks);
  request.set_wait_ms(kWaitMs);
  request.set_request_id(context_->NewRequestId());
  call_ = std::make_unique<UnaryCall>(
      context_->side, node_, Method::kLookup, request.SerializeAsString(),
      kLookupTimeout + absl::Milliseconds(kWaitMs),
      [this, count](const absl::StatusOr<std::string>& answer) { TakeLookup(count, answer); });
}

void PrefixFetch::TakeLookup(size_t count, const absl::StatusOr<std::string>& answer) {
  if (!answer.ok()) return End(answer.status());
  v1::LookupResponse response;
  CAIRN_CHECK(response.ParseFromString(*answer));
  namespace_known_ = response.namespace_known();
  if (response.lease().empty()) return End(absl::OkStatus());
  CAIRN_CHECK(response.results(0).blocks_leased() <= count);
  held_.push_back(
      {*LeaseId::FromBytes(response.lease()), std::vector<uint32_t>(context_->ranks, 0)});
  FetchRank(0, response.results(0).blocks_leased());
}

void PrefixFetch::FetchRank(uint32_t rank, size_t count) {
  const NamespaceHandle& name_space = context_->prompt->name_space();
  const std::vector<BlockKey>& keys = context_->prompt->prompt().keys();
  const auto first = keys.begin() + static_cast<ptrdiff_t>(usable_blocks_);
  GetCall::What what{
      .name_space = &name_space,
      .keys = {first, first + static_cast<ptrdiff_t>(count)},
      .lease = held_.back().lease,
      .parts = context_->PartsOfRank(rank),
      .place = absl::MakeSpan(context_->memory).subspan(usable_blocks_ * name_space.block_bytes())};
  get_ = std::make_unique<GetCall>(
      context_->side, node_, std::move(what), kGetTimeout,
      [this, rank, count](const GetResult& result) { TakeRank(rank, count, result); });
}

void PrefixFetch::TakeRank(uint32_t rank, size_t count, const GetResult& result) {
  fetch_status_.Update(result.status);
  held_.back().usable_of_rank[rank] = static_cast<uint32_t>(result.usable_prefix);
  NoteUses(context_->PartsOfRank(rank), usable_blocks_, result.usable_prefix);
  Done next = [this, rank, count](const absl::Status&) {
    if (rank + 1 < context_->ranks) return FetchRank(rank + 1, count);
    const std::vector<uint32_t>& usable = held_.back().usable_of_rank;
    usable_blocks_ += *std::min_element(usable.begin(), usable.end());
    End(fetch_status_);
  };
  if (result.mismatches.empty()) return next(absl::OkStatus());
  ReportMismatch(MismatchedSegment(result.mismatches.front()), std::move(next));
}

void PrefixFetch::NoteUses(const std::vector<PartLayers>& parts, size_t first, size_t count) {
  const PayloadMap& map = context_->prompt->name_space().payload_map();
  for (size_t block = first; block < first + count; ++block) {
    const auto bytes =
        absl::MakeConstSpan(context_->memory).subspan(block * map.block_bytes(), map.block_bytes());
    for (const PartLayers& part : parts) {
      const PayloadMap::Part& of = map.parts()[*map.FindPart(part.group, part.slice)];
      for (uint32_t layer = 0; layer < of.layers; ++layer) {
        context_->side.world->witnesses.OnUsed(
            {map,
             context_->prompt->prompt().keys()[block],
             {part.group, part.slice, layer},
             bytes.subspan(of.offset + layer * of.segment_bytes, of.segment_bytes)});
      }
    }
  }
}

void PrefixFetch::ReportMismatch(const MismatchedSegment& mismatch, Done then) {
  v1::ReportMismatchRequest request;
  request.set_fingerprint(std::string(context_->prompt->name_space().fingerprint().view()));
  v1::SegmentRef* segment = request.mutable_segment();
  segment->set_key(std::string(mismatch.key.view()));
  segment->set_group(mismatch.id.group);
  segment->set_slice(mismatch.id.slice);
  segment->set_layer(mismatch.id.layer);
  call_ = std::make_unique<UnaryCall>(
      context_->side, node_, Method::kReportMismatch, request.SerializeAsString(), kEndTimeout,
      [then = std::move(then)](const absl::StatusOr<std::string>& answer) {
        then(answer.status());
      });
}

void PrefixFetch::EndLeases(Done done) {
  done_ = std::move(done);
  ends_left_ = 1;
  for (const Held& held : held_) {
    for (uint32_t rank = 0; rank < context_->ranks; ++rank) {
      if (!context_->side.world->weather.calm() && context_->side.dice->Chance(kForgetsChance)) {
        continue;
      }
      v1::EndLeaseRequest request;
      request.set_lease(std::string(held.lease.view()));
      request.set_reader(rank);
      request.add_usable_blocks(held.usable_of_rank[rank]);
      ++ends_left_;
      ends_.push_back(std::make_unique<UnaryCall>(context_->side, node_, Method::kEndLease,
                                                  request.SerializeAsString(), kEndTimeout,
                                                  [this](const absl::StatusOr<std::string>&) {
                                                    if (--ends_left_ == 0) End(absl::OkStatus());
                                                  }));
    }
  }
  if (--ends_left_ > 0) return;
  // Also with nothing to end, `done` comes from an event.
  context_->side.world->scheduler.After(absl::ZeroDuration(), context_->side.host,
                                        alive_.Guard([this] { End(absl::OkStatus()); }));
}

void PrefixFetch::End(const absl::Status& status) {
  const absl::Status how = status;
  const Done done = std::move(done_);
  done(how);
}

}  // namespace cairn::sim
