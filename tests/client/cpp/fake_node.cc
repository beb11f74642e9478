#include "tests/client/cpp/fake_node.h"

#include <utility>

#include "common/base/check.h"
#include "common/rpc/status_mapping.h"

namespace cairn::testing {
namespace {

BlockKey KeyAt(const std::string& keys, size_t index) {
  return *BlockKey::FromBytes(absl::string_view(keys).substr(index * kKeyBytes, kKeyBytes));
}

}  // namespace

FakeNode::FakeNode(const NamespaceHandle& name_space, grpc::Service* beside)
    : name_space_(name_space) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.RegisterService(this);
  if (beside != nullptr) builder.RegisterService(beside);
  server_ = builder.BuildAndStart();
  CAIRN_CHECK(server_ != nullptr && port != 0);
  target_ = "127.0.0.1:" + std::to_string(port);
}

FakeNode::~FakeNode() { Stop(); }

void FakeNode::Stop() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

void FakeNode::FailNext(const std::string& method, const absl::Status& status, int times) {
  absl::MutexLock lock(&mutex_);
  for (int i = 0; i < times; ++i) failures_[method].push_back(status);
}

void FakeNode::LoseAnswer(const std::string& method) {
  absl::MutexLock lock(&mutex_);
  ++answers_lost_[method];
}

void FakeNode::BendGet(std::function<void(Frames*)> bend) {
  absl::MutexLock lock(&mutex_);
  bend_ = std::move(bend);
}

void FakeNode::CutNextGetAfter(size_t frames) {
  absl::MutexLock lock(&mutex_);
  cut_get_after_ = frames;
}

void FakeNode::HoldNextWriteUntil(size_t frames_written) {
  absl::MutexLock lock(&mutex_);
  hold_write_until_ = frames_written;
}

void FakeNode::CutNextWriteAfter(size_t frames) {
  absl::MutexLock lock(&mutex_);
  cut_write_after_ = frames;
}

void FakeNode::ForgetNamespace() {
  absl::MutexLock lock(&mutex_);
  namespace_known_ = false;
}

void FakeNode::HideFromNextLookups(int times) {
  absl::MutexLock lock(&mutex_);
  lookups_to_hide_from_ = times;
}

void FakeNode::RefusePieces(bool refuse) {
  absl::MutexLock lock(&mutex_);
  refuse_pieces_ = refuse;
}

void FakeNode::AnswerTwice(bool twice) {
  absl::MutexLock lock(&mutex_);
  answer_twice_ = twice;
}

void FakeNode::AnswerReserve(std::vector<v1::ReserveOutcome> outcomes) {
  absl::MutexLock lock(&mutex_);
  reserve_outcomes_ = std::move(outcomes);
}

void FakeNode::SetFeed(std::vector<v1::WatchBlocksResponse> messages) {
  absl::MutexLock lock(&mutex_);
  feed_ = std::move(messages);
}

std::vector<std::string> FakeNode::RequestIds(const std::string& method) const {
  absl::MutexLock lock(&mutex_);
  const auto found = request_ids_.find(method);
  return found == request_ids_.end() ? std::vector<std::string>() : found->second;
}

int FakeNode::Calls(const std::string& method) const {
  absl::MutexLock lock(&mutex_);
  const auto found = calls_.find(method);
  return found == calls_.end() ? 0 : found->second;
}

std::vector<v1::EndLeaseRequest> FakeNode::ended() const {
  absl::MutexLock lock(&mutex_);
  return ended_;
}

std::vector<v1::LookupRequest> FakeNode::lookups() const {
  absl::MutexLock lock(&mutex_);
  return lookups_;
}

std::vector<v1::ReserveRequest> FakeNode::reserves() const {
  absl::MutexLock lock(&mutex_);
  return reserves_;
}

std::vector<v1::PinBlocksRequest> FakeNode::pins() const {
  absl::MutexLock lock(&mutex_);
  return pins_;
}

std::vector<v1::GetRequest> FakeNode::gets() const {
  absl::MutexLock lock(&mutex_);
  return gets_;
}

std::vector<v1::SegmentRef> FakeNode::mismatches() const {
  absl::MutexLock lock(&mutex_);
  return mismatches_;
}

size_t FakeNode::blocks_present() const {
  absl::MutexLock lock(&mutex_);
  return present_.size();
}

size_t FakeNode::frames_written() const {
  absl::MutexLock lock(&mutex_);
  return frames_written_;
}

void FakeNode::AwaitCall(const std::string& method) const {
  absl::MutexLock lock(&mutex_);
  const auto came = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return calls_.find(method) != calls_.end();
  };
  mutex_.Await(absl::Condition(&came));
}

std::vector<uint32_t> FakeNode::AwaitResync() const {
  absl::MutexLock lock(&mutex_);
  const auto came = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !resyncs_.empty(); };
  mutex_.Await(absl::Condition(&came));
  return resyncs_;
}

grpc::Status FakeNode::Begin(const std::string& method, const std::string& request_id) {
  absl::MutexLock lock(&mutex_);
  ++calls_[method];
  request_ids_[method].push_back(request_id);
  std::vector<absl::Status>& failures = failures_[method];
  if (failures.empty()) return grpc::Status::OK;
  const absl::Status status = failures.front();
  failures.erase(failures.begin());
  return ToGrpcStatus(status);
}

grpc::Status FakeNode::End(const std::string& method) {
  absl::MutexLock lock(&mutex_);
  return EndLocked(method);
}

grpc::Status FakeNode::EndLocked(const std::string& method) {
  int& lost = answers_lost_[method];
  if (lost == 0) return grpc::Status::OK;
  --lost;
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the answer was lost");
}

grpc::Status FakeNode::RegisterNamespace(grpc::ServerContext*, const v1::RegisterNamespaceRequest*,
                                         v1::RegisterNamespaceResponse* response) {
  if (grpc::Status status = Begin("RegisterNamespace"); !status.ok()) return status;
  response->set_fingerprint(std::string(name_space_.fingerprint().view()));
  response->set_block_bytes(name_space_.block_bytes());
  return End("RegisterNamespace");
}

grpc::Status FakeNode::Lookup(grpc::ServerContext*, const v1::LookupRequest* request,
                              v1::LookupResponse* response) {
  grpc::Status status = Begin("Lookup", request->request_id());
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  lookups_.push_back(*request);
  response->set_namespace_known(namespace_known_);
  const bool hide = lookups_to_hide_from_ > 0;
  if (hide) --lookups_to_hide_from_;
  for (const v1::Prompt& prompt : request->prompts()) {
    if (!namespace_known_) {
      response->add_results();
      continue;
    }
    // Prompts by keys are looked up; by regions, everything counts as present.
    v1::PromptResult* result = response->add_results();
    uint32_t total = static_cast<uint32_t>(prompt.keys().size() / kKeyBytes);
    for (const v1::Region& region : prompt.regions()) {
      total += static_cast<uint32_t>(region.tokens_size()) / name_space_.block_tokens();
    }
    uint32_t found = prompt.regions_size() > 0 ? total : 0;
    while (!hide && found < total && present_.contains(KeyAt(prompt.keys(), found))) ++found;
    result->set_blocks_total(total);
    result->set_blocks_present(found);
    result->set_tokens_present(found * name_space_.block_tokens());
    if (request->has_lease()) result->set_blocks_leased(found);
  }
  if (request->has_lease()) {
    response->set_lease(std::string(kKeyBytes, 'L'));
    response->set_lease_ttl_ms(1000);
  }
  return EndLocked("Lookup");
}

grpc::Status FakeNode::GetLease(grpc::ServerContext*, const v1::GetLeaseRequest*,
                                v1::GetLeaseResponse* response) {
  if (grpc::Status status = Begin("GetLease"); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  response->set_readers(1);
  response->set_readers_ended(ended_.empty() ? 0 : 1);
  response->set_complete(!ended_.empty());
  return grpc::Status::OK;
}

grpc::Status FakeNode::RenewLease(grpc::ServerContext*, const v1::RenewLeaseRequest* request,
                                  v1::RenewLeaseResponse* response) {
  if (grpc::Status status = Begin("RenewLease"); !status.ok()) return status;
  response->set_ttl_ms(request->ttl_ms());
  return grpc::Status::OK;
}

grpc::Status FakeNode::EndLease(grpc::ServerContext*, const v1::EndLeaseRequest* request,
                                v1::EndLeaseResponse* response) {
  if (grpc::Status status = Begin("EndLease"); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  ended_.push_back(*request);
  response->set_complete(true);
  return grpc::Status::OK;
}

grpc::Status FakeNode::Abort(grpc::ServerContext*, const v1::AbortRequest* request,
                             v1::AbortResponse*) {
  if (grpc::Status status = Begin("Abort"); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  tokens_.erase(request->token());
  return grpc::Status::OK;
}

grpc::Status FakeNode::ReportMismatch(grpc::ServerContext*,
                                      const v1::ReportMismatchRequest* request,
                                      v1::ReportMismatchResponse* response) {
  if (grpc::Status status = Begin("ReportMismatch"); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  mismatches_.push_back(request->segment());
  response->set_confirmed(true);
  return grpc::Status::OK;
}

grpc::Status FakeNode::Delete(grpc::ServerContext*, const v1::DeleteRequest* request,
                              v1::DeleteResponse* response) {
  if (grpc::Status status = Begin("Delete"); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i * kKeyBytes < request->keys().size(); ++i) {
    response->add_removed(present_.erase(KeyAt(request->keys(), i)) > 0);
  }
  return grpc::Status::OK;
}

grpc::Status FakeNode::PinBlocks(grpc::ServerContext*, const v1::PinBlocksRequest* request,
                                 v1::PinBlocksResponse* response) {
  if (grpc::Status status = Begin("PinBlocks"); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  pins_.push_back(*request);
  for (size_t i = 0; i * kKeyBytes < request->keys().size(); ++i) {
    const bool there = present_.contains(KeyAt(request->keys(), i));
    response->add_outcomes(!there                   ? v1::PIN_OUTCOME_NOT_THERE
                           : request->pin_ms() == 0 ? v1::PIN_OUTCOME_RELEASED
                                                    : v1::PIN_OUTCOME_PINNED);
  }
  return grpc::Status::OK;
}

grpc::Status FakeNode::WatchBlocks(
    grpc::ServerContext*,
    grpc::ServerReaderWriter<v1::WatchBlocksResponse, v1::WatchBlocksRequest>* stream) {
  if (grpc::Status status = Begin("WatchBlocks"); !status.ok()) return status;
  std::vector<v1::WatchBlocksResponse> messages;
  {
    absl::MutexLock lock(&mutex_);
    messages = feed_;
  }
  v1::WatchBlocksRequest request;
  if (!stream->Read(&request)) return grpc::Status::OK;
  for (const v1::WatchBlocksResponse& message : messages) stream->Write(message);
  while (stream->Read(&request)) {
    absl::MutexLock lock(&mutex_);
    resyncs_.insert(resyncs_.end(), request.resync_shards().begin(), request.resync_shards().end());
  }
  return grpc::Status::OK;
}

grpc::Status FakeNode::RetireNamespace(grpc::ServerContext*, const v1::RetireNamespaceRequest*,
                                       v1::RetireNamespaceResponse* response) {
  if (grpc::Status status = Begin("RetireNamespace"); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  response->set_blocks(present_.size());
  response->set_done(true);
  present_.clear();
  namespace_known_ = false;
  return EndLocked("RetireNamespace");
}

grpc::Status FakeNode::ClearScope(grpc::ServerContext*, const v1::ClearScopeRequest*,
                                  v1::ClearScopeResponse* response) {
  if (grpc::Status status = Begin("ClearScope"); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  response->set_blocks(present_.size());
  present_.clear();
  return EndLocked("ClearScope");
}

grpc::Status FakeNode::Describe(grpc::ServerContext* context, const v1::DescribeRequest*,
                                v1::DescribeResponse*) {
  if (grpc::Status status = Begin("Describe"); !status.ok()) return status;
  (void)context;
  return End("Describe");
}

void FakeNode::SayPulls(std::vector<v1::PullOutcome> outcomes, std::string detail) {
  absl::MutexLock lock(&mutex_);
  pull_outcomes_ = std::move(outcomes);
  pull_detail_ = std::move(detail);
}

std::vector<v1::PullBlocksRequest> FakeNode::pulls() const {
  absl::MutexLock lock(&mutex_);
  return pulls_;
}

grpc::Status FakeNode::PullBlocks(grpc::ServerContext*, const v1::PullBlocksRequest* request,
                                  v1::PullBlocksResponse* response) {
  if (grpc::Status status = Begin("PullBlocks"); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  pulls_.push_back(*request);
  CAIRN_CHECK(!pull_outcomes_.empty());
  const v1::PullOutcome outcome = pull_outcomes_.front();
  if (pull_outcomes_.size() > 1) pull_outcomes_.erase(pull_outcomes_.begin());
  for (size_t i = 0; i * kKeyBytes < request->keys().size(); ++i) response->add_outcomes(outcome);
  response->set_complete(outcome != v1::PULL_OUTCOME_IN_PROGRESS);
  response->set_detail(pull_detail_);
  return grpc::Status::OK;
}

void FakeNode::OfferLocal(v1::OpenLocalResponse opened) {
  absl::MutexLock lock(&mutex_);
  opened_ = std::move(opened);
}

grpc::Status FakeNode::OpenLocal(grpc::ServerContext*, const v1::OpenLocalRequest*,
                                 v1::OpenLocalResponse* response) {
  absl::MutexLock lock(&mutex_);
  *response = opened_;
  return grpc::Status::OK;
}

}  // namespace cairn::testing
