#include "cache_node/local/local_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/local/local_limits.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/retry_status.h"

namespace cairn::node {
namespace {

constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);
static_assert(kLocalKeysPerReadMax <= BlockStore::kStepsPerLock);

v1::BlockState ToState(BlockState state) { return static_cast<v1::BlockState>(state); }

void SetFailure(const absl::Status& status, v1::LocalAnswer* answer) {
  v1::LocalFailure* failure = answer->mutable_failure();
  failure->set_code(static_cast<int32_t>(status.code()));
  failure->set_message(std::string(status.message().substr(0, 1024)));
  const absl::Duration wait = RetryAfter(status).value_or(absl::ZeroDuration());
  failure->set_retry_after_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait)));
}

LookupQuery QueryOf(absl::Span<const BlockKey> keys, bool each) {
  LookupQuery query;
  query.lease = LeaseWish{};
  query.resident_only = true;
  // Single blocks are fetched, not looked for.
  query.counted = !each;
  if (each) {
    for (const BlockKey& key : keys) query.prompts.push_back({.keys = {key}});
  } else {
    query.prompts.push_back({.keys = {keys.begin(), keys.end()}});
  }
  return query;
}

}  // namespace

LocalSession::LocalSession(const Parts& parts, Caller caller, BorrowerId borrower)
    : parts_(parts), caller_(std::move(caller)), borrower_(borrower) {}

LocalSession::~LocalSession() {
  for (const auto& [id, share] : shares_) {
    parts_.store->CloseShare(caller_.tenant, id.first, id.second);
  }
  parts_.counters->shares.fetch_sub(shares_.size(), std::memory_order_relaxed);
}

LocalSession::Reply LocalSession::Handle(const v1::LocalRequest& request) {
  Reply reply;
  absl::Status status;
  switch (request.request_case()) {
    case v1::LocalRequest::kRead:
      status = Read(request.read(), &reply);
      break;
    case v1::LocalRequest::kStage:
      status = Stage(request.stage(), &reply);
      break;
    case v1::LocalRequest::kPut:
      status = Put(request.put(), &reply);
      break;
    case v1::LocalRequest::kEnd:
      End(request.end());
      return reply;
    case v1::LocalRequest::kUnmapped:
      Unmapped(request.unmapped());
      return reply;
    case v1::LocalRequest::kHello:
      status = absl::InvalidArgumentError("hello is said once, first");
      break;
    case v1::LocalRequest::REQUEST_NOT_SET:
      status = absl::InvalidArgumentError("a request that this version does not know");
      break;
  }
  if (!status.ok()) {
    reply = Reply();
    reply.answer = std::make_unique<v1::LocalAnswer>();
    SetFailure(status, reply.answer.get());
  }
  return reply;
}

absl::Status LocalSession::Read(const v1::LocalRead& request, Reply* reply) {
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  const absl::StatusOr<std::vector<BlockKey>> keys =
      KeysFromProto(request.keys(), "keys", kLocalKeysPerReadMax);
  if (!keys.ok()) return keys.status();
  if (absl::Status status = CheckNoDuplicates(*keys, "keys"); !status.ok()) return status;
  if (absl::Status status = parts_.rates->Admit(caller_.tenant); !status.ok()) return status;
  parts_.counters->reads.fetch_add(1, std::memory_order_relaxed);

  reply->answer = std::make_unique<v1::LocalAnswer>();
  v1::LocalPlaces* places = reply->answer->mutable_places();
  if (!request.lease().empty()) {
    const absl::StatusOr<LeaseId> lease = IdFromProto<LeaseId>(request.lease(), "lease");
    if (!lease.ok()) return lease.status();
    places->set_lease(request.lease());
    return AddPlaces(*keys, *lease, request.reader(), request.hold(), places, reply);
  }
  const absl::StatusOr<LookupAnswer> found = Lease(request, *fingerprint, *keys);
  if (!found.ok()) return found.status();
  if (found->lease.has_value()) {
    const Share share{.blocks = found->prompts[0].leased, .counts = !request.each()};
    if (absl::Status status = Hold({*found->lease, 0}, share); !status.ok()) return status;
    places->set_lease(std::string(found->lease->view()));
    absl::Status status = AddPlaces(*keys, *found->lease, 0, /*hold=*/true, places, reply);
    if (!status.ok()) return status;
  }
  // What the lease does not have: why not.
  size_t at = 0;
  for (const PromptAnswer& prompt : found->prompts) {
    for (const BlockAnswer& block : prompt.blocks) {
      if (!found->lease.has_value()) places->add_places();
      v1::LocalPlace* place = places->mutable_places(static_cast<int>(at++));
      const bool there = place->state() == v1::BLOCK_STATE_UNSPECIFIED && found->lease.has_value();
      if (!there && place->state() != v1::BLOCK_STATE_HOST) place->set_state(ToState(block.state));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LookupAnswer> LocalSession::Lease(const v1::LocalRead& request,
                                                 const Fingerprint& fingerprint,
                                                 absl::Span<const BlockKey> keys) {
  if (parts_.draining->load(std::memory_order_relaxed)) {
    return absl::UnavailableError("the node is draining; ask another one");
  }
  const bool known = parts_.store->IsKnownTo(caller_.tenant, fingerprint);
  return parts_.store->Lookup(caller_.tenant, known ? fingerprint : Fingerprint(),
                              QueryOf(keys, request.each()));
}

// Where it is full: those that ended otherwise, by EndLease or revocation, are of no account.
void LocalSession::DropEndedShares() {
  for (auto it = shares_.begin(); it != shares_.end();) {
    auto current = it++;
    const absl::StatusOr<LeaseStatus> status =
        parts_.store->GetLease(caller_.tenant, current->first.first);
    if (status.ok() && !status->complete) continue;
    shares_.erase(current);
    parts_.counters->shares.fetch_sub(1, std::memory_order_relaxed);
  }
}

absl::Status LocalSession::Hold(const ShareId& id, const Share& share) {
  if (shares_.contains(id)) return absl::OkStatus();
  if (shares_.size() >= kLocalSharesMax) DropEndedShares();
  if (shares_.size() >= kLocalSharesMax) {
    parts_.store->CloseShare(caller_.tenant, id.first, id.second);
    return WithRetryAfter(
        absl::ResourceExhaustedError(
            absl::StrCat("this connection reads ", shares_.size(), " shares in place already")),
        kRetryAfter);
  }
  parts_.counters->shares.fetch_add(1, std::memory_order_relaxed);
  shares_[id] = share;
  return absl::OkStatus();
}

absl::Status LocalSession::AddPlaces(absl::Span<const BlockKey> keys, const LeaseId& lease,
                                     uint32_t reader, bool hold, v1::LocalPlaces* places,
                                     Reply* reply) {
  const absl::StatusOr<InPlaceAnswer> answer = parts_.store->ReadInPlace(
      caller_.tenant, lease, reader, keys, kLocalDigestsPerAnswerMax, hold);
  if (!answer.ok()) return answer.status();
  if (hold) {
    if (absl::Status status = Hold({lease, reader}, {}); !status.ok()) return status;
  }
  uint64_t given = 0;
  uint64_t given_bytes = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    v1::LocalPlace* place = places->add_places();
    // Beyond what one answer holds: to be asked for again.
    place->set_state(v1::BLOCK_STATE_HOST);
    if (i >= answer->blocks.size()) continue;
    const InPlaceBlock& block = answer->blocks[i];
    if (block.state != BlockState::kHost) place->set_state(ToState(block.state));
    const bool fits = block.digests.size() <= kLocalDigestsPerAnswerMax;
    if (block.state != BlockState::kHost || !fits || !Give(block, places, reply)) continue;
    place->set_state(v1::BLOCK_STATE_UNSPECIFIED);
    place->set_segment(block.segment_id);
    place->set_slot(block.slot);
    place->set_generation(block.generation);
    place->mutable_digests()->Add(block.digests.begin(), block.digests.end());
    place->mutable_absent()->Add(block.absent.begin(), block.absent.end());
    ++given;
    given_bytes += block.bytes;
  }
  parts_.rates->Charge(caller_.tenant, given_bytes);
  parts_.counters->places.fetch_add(given, std::memory_order_relaxed);
  return absl::OkStatus();
}

bool LocalSession::Give(const InPlaceBlock& block, v1::LocalPlaces* places, Reply* reply) {
  if (!block.lendable) return false;
  if (given_.contains(block.segment_id)) return true;
  if (reply->segments.size() >= kLocalSegmentsPerAnswerMax) return false;
  absl::StatusOr<LentSegment> lent = parts_.store->LendSegment(caller_.tenant, block, borrower_);
  if (!lent.ok()) return false;
  given_.insert(block.segment_id);
  v1::LocalSegment* segment = places->add_segments();
  segment->set_id(lent->id);
  segment->set_bytes(lent->bytes);
  segment->set_slot_bytes(lent->slot_bytes);
  segment->set_slots(lent->slots);
  reply->segments.push_back(*std::move(lent));
  parts_.counters->segments_given.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void LocalSession::End(const v1::LocalEnd& request) {
  const std::optional<LeaseId> lease = LeaseId::FromBytes(request.lease());
  // What the node takes is of one reader.
  auto it = lease.has_value() ? shares_.find({*lease, 0}) : shares_.end();
  if (it == shares_.end()) return;
  const Share share = it->second;
  shares_.erase(it);
  parts_.counters->shares.fetch_sub(1, std::memory_order_relaxed);
  const uint32_t usable = std::min(request.usable_blocks(), share.blocks);
  if (share.counts) {
    (void)parts_.store->EndLease(caller_.tenant, *lease, /*reader=*/0, {&usable, 1});
  } else {
    parts_.store->CloseShare(caller_.tenant, *lease, /*reader=*/0);
  }
}

void LocalSession::Unmapped(const v1::LocalUnmapped& request) {
  if (request.all()) {
    given_.clear();
    parts_.store->ReturnAllSegments(borrower_);
    return;
  }
  for (const uint64_t segment : request.segments()) given_.erase(segment);
  parts_.store->ReturnSegments(
      borrower_, {request.segments().data(), static_cast<size_t>(request.segments_size())});
}

absl::Status LocalSession::Stage(const v1::LocalStage& request, Reply* reply) {
  if (!caller_.Is(Role::kWorker)) {
    return absl::PermissionDeniedError("staging memory is for workers, who may write");
  }
  DropIdleStaging(absl::InfiniteFuture());
  reply->answer = std::make_unique<v1::LocalAnswer>();
  reply->answer->mutable_staged();
  if (request.bytes() == 0) return absl::OkStatus();
  if (parts_.draining->load(std::memory_order_relaxed)) {
    return absl::UnavailableError("the node is draining; ask another one");
  }
  absl::StatusOr<std::unique_ptr<StagingArea>> made =
      StagingArea::Make(parts_.store, parts_.staging, caller_.tenant, borrower_, request.bytes());
  if (!made.ok()) return made.status();
  reply->answer->mutable_staged()->set_bytes((*made)->bytes().size());
  const absl::Time now = parts_.time->Now();
  absl::MutexLock lock(&staging_mutex_);
  staging_ = *std::move(made);
  reply->staging = staging_;
  staging_used_ = now;
  return absl::OkStatus();
}

void LocalSession::DropIdleStaging(absl::Time now) {
  std::shared_ptr<StagingArea> dropped;  // Freed after the lock.
  absl::MutexLock lock(&staging_mutex_);
  if (staging_ != nullptr && now - staging_used_ >= kLocalStagingIdle) dropped.swap(staging_);
}

absl::Status LocalSession::Put(const v1::LocalPut& request, Reply* reply) {
  const absl::StatusOr<TokenId> token = IdFromProto<TokenId>(request.token(), "token");
  if (!token.ok()) return token.status();
  std::shared_ptr<StagingArea> staging;
  {
    const absl::Time now = parts_.time->Now();
    absl::MutexLock lock(&staging_mutex_);
    staging = staging_;
    staging_used_ = now;
  }
  if (staging == nullptr) {
    return absl::FailedPreconditionError("this connection has no staging memory: ask for some");
  }
  uint64_t layers = 0;
  for (const v1::LocalPiece& piece : request.pieces()) layers += piece.layers();
  if (request.pieces_size() > static_cast<int>(kLocalPiecesPerPutMax) ||
      layers > kLocalDigestsPerAnswerMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("pieces: ", request.pieces_size(), " of ", layers, " layers, at most ",
                     kLocalPiecesPerPutMax, " of ", kLocalDigestsPerAnswerMax));
  }
  parts_.counters->puts.fetch_add(1, std::memory_order_relaxed);
  reply->answer = std::make_unique<v1::LocalAnswer>();
  v1::LocalLanded* landed = reply->answer->mutable_landed();
  for (int i = 0; i < request.pieces_size(); ++i) {
    const v1::LocalPiece& piece = request.pieces(i);
    const absl::Status status = Land(*token, piece, staging->bytes(), landed->mutable_digests());
    if (status.ok()) continue;
    for (uint32_t layer = 0; layer < piece.layers(); ++layer) landed->add_digests(0);
    v1::PieceError* error = landed->add_errors();
    error->set_piece(static_cast<uint32_t>(i));
    error->set_code(static_cast<int32_t>(status.code()));
    // Many of them fit into one packet.
    error->set_message(
        std::string(status.message().substr(0, landed->errors_size() > 8 ? 0 : 512)));
  }
  return absl::OkStatus();
}

absl::Status LocalSession::Land(const TokenId& token, const v1::LocalPiece& piece,
                                absl::Span<const uint8_t> all,
                                google::protobuf::RepeatedField<uint64_t>* digests) {
  const v1::Piece& named = piece.piece();
  if (named.offset() != 0 || piece.layers() == 0 || piece.staging_offset() > all.size() ||
      named.length() > all.size() - piece.staging_offset()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a piece of ", piece.layers(), " layers at ", piece.staging_offset(), " of ",
                     named.length(), " bytes in staging memory of ", all.size(),
                     ": pieces are whole segments and lie within it"));
  }
  WritePiece write;
  write.run = {.block = named.block(),
               .group = named.group(),
               .slice = named.slice(),
               .layer = named.layer(),
               .digests = {named.digests().begin(), named.digests().end()}};
  write.length = named.length();
  write.unhashed = named.digests().empty();
  if (write.unhashed) write.run.digests.assign(piece.layers(), 0);
  if (write.run.digests.size() != piece.layers()) {
    return absl::InvalidArgumentError(
        absl::StrCat(write.run.digests.size(), " digests for ", piece.layers(), " layers"));
  }
  absl::StatusOr<WriteClaim> claim =
      parts_.store->BeginWrite(caller_.tenant, token, /*writer=*/borrower_, write);
  if (!claim.ok()) return claim.status();
  const absl::StatusOr<std::vector<uint64_t>> landed = parts_.store->LandStaged(
      *std::move(claim), all.subspan(piece.staging_offset(), named.length()));
  if (!landed.ok()) return landed.status();
  for (uint32_t i = 0; i < piece.layers(); ++i) {
    digests->Add(i < landed->size() ? (*landed)[i] : write.run.digests[i]);
  }
  parts_.counters->landed_bytes.fetch_add(named.length(), std::memory_order_relaxed);
  return absl::OkStatus();
}

}  // namespace cairn::node
