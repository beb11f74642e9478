#include "tests/client/cpp/decode/fake_decode.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/identity/block_hasher.h"
#include "common/rpc/prompt_conversion.h"
#include "common/rpc/status_mapping.h"

namespace cairn::testing {
namespace {

absl::Status NoSuchSequence() { return absl::AbortedError("no such sequence: open it again"); }

}  // namespace

FakeDecode::FakeDecode(const NamespaceHandle& name_space, Source source)
    : name_space_(name_space), source_(std::move(source)) {}

void FakeDecode::HaveNoMemory() {
  absl::MutexLock lock(&mutex_);
  has_memory_ = false;
}

void FakeDecode::CutStreams(int streams, int answers_first) {
  absl::MutexLock lock(&mutex_);
  streams_to_cut_ = streams;
  answers_first_ = answers_first;
}

void FakeDecode::Die() {
  absl::MutexLock lock(&mutex_);
  dead_ = true;
  sequences_.clear();
}

void FakeDecode::Hold() {
  absl::MutexLock lock(&mutex_);
  held_ = true;
}

void FakeDecode::Release() {
  absl::MutexLock lock(&mutex_);
  held_ = false;
}

void FakeDecode::Bend(std::function<void(v1::DecodeResponse*)> bend) {
  absl::MutexLock lock(&mutex_);
  bend_ = std::move(bend);
}

void FakeDecode::FailItems(int items, const absl::Status& status, uint32_t retry_ms) {
  absl::MutexLock lock(&mutex_);
  v1::AttendResult result;
  result.set_code(status.raw_code());
  result.set_message(std::string(status.message()));
  result.set_retry_ms(retry_ms);
  item_failures_.insert(item_failures_.end(), static_cast<size_t>(items), result);
}

void FakeDecode::FailOpens(int opens, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  open_failures_.insert(open_failures_.end(), static_cast<size_t>(opens), status);
}

void FakeDecode::FailStreams(int streams, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  stream_failures_.insert(stream_failures_.end(), static_cast<size_t>(streams), status);
}

void FakeDecode::ForgetSequences() {
  absl::MutexLock lock(&mutex_);
  sequences_.clear();
}

void FakeDecode::ForgetLeases() {
  absl::MutexLock lock(&mutex_);
  leases_forgotten_ = true;
}

void FakeDecode::LoseTokensAfter(uint64_t length) {
  absl::MutexLock lock(&mutex_);
  ++cut_now_;
  for (auto& [id, sequence] : sequences_) sequence.Truncate(length);
}

size_t FakeDecode::open_sequences() const {
  absl::MutexLock lock(&mutex_);
  return sequences_.size();
}

int FakeDecode::opens() const {
  absl::MutexLock lock(&mutex_);
  return opens_;
}

int FakeDecode::streams() const {
  absl::MutexLock lock(&mutex_);
  return streams_;
}

int FakeDecode::steps() const {
  absl::MutexLock lock(&mutex_);
  return steps_;
}

int FakeDecode::items() const {
  absl::MutexLock lock(&mutex_);
  return items_;
}

std::vector<std::string> FakeDecode::request_ids() const {
  absl::MutexLock lock(&mutex_);
  return request_ids_;
}

void FakeDecode::AwaitSteps(int steps) const {
  absl::MutexLock lock(&mutex_);
  const auto came = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return steps_ >= steps; };
  mutex_.Await(absl::Condition(&came));
}

absl::StatusOr<FakeSequence*> FakeDecode::Find(const std::string& id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return NoSuchSequence();
  return &found->second;
}

std::string FakeDecode::Add(FakeSequence sequence) {
  std::string id(kKeyBytes, 'S');
  const uint32_t number = next_id_++;
  std::copy_n(reinterpret_cast<const char*>(&number), sizeof(number), id.begin());
  sequences_.emplace(id, std::move(sequence));
  return id;
}

absl::StatusOr<FakeSequence> FakeDecode::Leased(const v1::LeasedBlocks& leased) {
  const std::vector<BlockKey> keys =
      leases_forgotten_ ? std::vector<BlockKey>() : source_.leased(leased.lease());
  FakeSequence sequence(&name_space_.payload_map(),
                        uint64_t{leased.first_block()} * name_space_.block_tokens());
  const size_t end = leased.first_block() + leased.blocks();
  for (size_t i = leased.first_block(); i < (leased.blocks() == 0 ? keys.size() : end); ++i) {
    const std::optional<std::string> block =
        i < keys.size() ? source_.block(keys[i]) : std::nullopt;
    if (!block) return absl::AbortedError("the lease does not cover it, or is over");
    sequence.Pin(*block);
  }
  return sequence;
}

absl::Status FakeDecode::Begin() {
  if (dead_) return absl::UnavailableError("gone");
  return has_memory_ ? absl::OkStatus()
                     : absl::FailedPreconditionError("no memory for sequences: --decode-memory");
}

void FakeDecode::Run(const v1::AttentionParameters& parameters, uint32_t layer,
                     const v1::AttendItem& item, v1::AttendResult* result) {
  ++items_;
  if (!item_failures_.empty()) {
    *result = item_failures_.front();
    item_failures_.erase(item_failures_.begin());
    return;
  }
  absl::Status status;
  if (item.has_leased()) {
    absl::StatusOr<FakeSequence> leased = Leased(item.leased());
    status = leased.ok() ? leased->Run(parameters, layer, item, result) : leased.status();
  } else {
    absl::StatusOr<FakeSequence*> sequence = Find(item.sequence());
    status = sequence.ok() ? (*sequence)->Run(parameters, layer, item, result) : sequence.status();
  }
  if (status.ok()) return;
  result->set_code(status.raw_code());
  result->set_message(std::string(status.message()));
}

v1::DecodeResponse FakeDecode::Step(const v1::DecodeOpen& open, const v1::DecodeRequest& request) {
  absl::MutexLock lock(&mutex_);
  ++steps_;
  const auto may_run = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !held_; };
  mutex_.Await(absl::Condition(&may_run));
  v1::DecodeResponse response;
  response.set_step(request.step());
  for (const v1::AttendItem& item : request.items()) {
    v1::AttendResult* result = response.add_results();
    if (request.parameters() >= static_cast<uint32_t>(open.parameters_size())) {
      result->set_code(static_cast<int>(absl::StatusCode::kInvalidArgument));
      continue;
    }
    Run(open.parameters(static_cast<int>(request.parameters())), request.layer(), item, result);
  }
  if (bend_) bend_(&response);
  return response;
}

grpc::Status FakeDecode::Attend(grpc::ServerContext*, const v1::AttendRequest* request,
                                v1::AttendResponse* response) {
  absl::MutexLock lock(&mutex_);
  if (dead_) return ToGrpcStatus(absl::UnavailableError("gone"));
  for (const v1::AttendItem& item : request->items()) {
    Run(request->parameters(), request->layer(), item, response->add_results());
  }
  return grpc::Status::OK;
}

grpc::Status FakeDecode::DecodeStream(
    grpc::ServerContext*, grpc::ServerReaderWriter<v1::DecodeResponse, v1::DecodeRequest>* stream) {
  int answers_left = INT32_MAX;
  int cuts = 0;
  {
    absl::MutexLock lock(&mutex_);
    ++streams_;
    cuts = cut_now_;
    if (!stream_failures_.empty()) {
      const absl::Status status = stream_failures_.front();
      stream_failures_.erase(stream_failures_.begin());
      return ToGrpcStatus(status);
    }
    if (dead_) return ToGrpcStatus(absl::UnavailableError("gone"));
    if (streams_to_cut_ > 0) {
      --streams_to_cut_;
      answers_left = answers_first_;
    }
  }
  v1::DecodeRequest request;
  if (!stream->Read(&request) || !request.has_open() ||
      request.open().fingerprint() != name_space_.fingerprint().view()) {
    return {grpc::StatusCode::FAILED_PRECONDITION, "no opening for this namespace"};
  }
  const v1::DecodeOpen open = request.open();
  if (!stream->Write(v1::DecodeResponse())) return grpc::Status::OK;
  while (stream->Read(&request)) {
    {
      absl::MutexLock lock(&mutex_);
      if (cuts != cut_now_) return ToGrpcStatus(absl::UnavailableError("cut"));
    }
    const v1::DecodeResponse response = Step(open, request);
    {
      absl::MutexLock lock(&mutex_);
      if (dead_) answers_left = 0;
    }
    if (answers_left-- <= 0) return ToGrpcStatus(absl::UnavailableError("cut"));
    if (!stream->Write(response)) break;
  }
  return grpc::Status::OK;
}

grpc::Status FakeDecode::OpenSequence(grpc::ServerContext*, const v1::OpenSequenceRequest* request,
                                      v1::OpenSequenceResponse* response) {
  absl::MutexLock lock(&mutex_);
  ++opens_;
  request_ids_.push_back(request->request_id());
  if (absl::Status status = Begin(); !status.ok()) return ToGrpcStatus(status);
  if (!open_failures_.empty()) {
    const absl::Status status = open_failures_.front();
    open_failures_.erase(open_failures_.begin());
    return ToGrpcStatus(status);
  }
  absl::StatusOr<PromptFields> prompt = PromptFromProto(request->prompt());
  if (!prompt.ok()) return ToGrpcStatus(prompt.status());
  std::vector<BlockKey> keys = prompt->keys;
  if (keys.empty()) {
    const Sha256BlockHasher hasher;
    keys = PromptKeys(hasher, name_space_.key_rules(), prompt->regions, prompt->extras).value();
  }
  FakeSequence sequence(&name_space_.payload_map(),
                        uint64_t{request->first_block()} * name_space_.block_tokens());
  for (size_t i = request->first_block(); i < keys.size(); ++i) {
    if (request->blocks_max() > 0 && i - request->first_block() >= request->blocks_max()) break;
    const std::optional<std::string> block = source_.block(keys[i]);
    if (!block) break;
    sequence.Pin(*block);
  }
  sequence.Reserve(request->reserve_tokens());
  response->set_first_token(sequence.first_token());
  response->set_covered_tokens(sequence.covered());
  response->set_reserved_tokens(sequence.reserved());
  response->set_sequence(Add(std::move(sequence)));
  return grpc::Status::OK;
}

grpc::Status FakeDecode::ForkSequence(grpc::ServerContext*, const v1::ForkSequenceRequest* request,
                                      v1::ForkSequenceResponse* response) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<FakeSequence*> found = Find(request->sequence());
  if (!found.ok()) return ToGrpcStatus(found.status());
  const FakeSequence original = **found;
  response->set_length_tokens(original.Length());
  for (uint32_t i = 0; i < request->count(); ++i) {
    FakeSequence fork = original;
    fork.Truncate(original.Length());
    fork.Reserve(original.Length() - original.covered() + request->reserve_tokens());
    response->mutable_sequences()->append(Add(std::move(fork)));
  }
  return grpc::Status::OK;
}

grpc::Status FakeDecode::TruncateSequence(grpc::ServerContext*,
                                          const v1::TruncateSequenceRequest* request,
                                          v1::TruncateSequenceResponse* response) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<FakeSequence*> found = Find(request->sequence());
  if (!found.ok()) return ToGrpcStatus(found.status());
  if (request->length_tokens() < (*found)->covered()) {
    return ToGrpcStatus(absl::FailedPreconditionError("below what is pinned"));
  }
  (*found)->Truncate(request->length_tokens());
  response->set_length_tokens((*found)->Length());
  return grpc::Status::OK;
}

grpc::Status FakeDecode::ReleaseWindow(grpc::ServerContext*,
                                       const v1::ReleaseWindowRequest* request,
                                       v1::ReleaseWindowResponse* response) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<FakeSequence*> found = Find(request->sequence());
  if (!found.ok()) return ToGrpcStatus(found.status());
  response->set_blocks(request->before_token() / name_space_.block_tokens());
  return grpc::Status::OK;
}

grpc::Status FakeDecode::GetSequence(grpc::ServerContext*, const v1::GetSequenceRequest* request,
                                     v1::GetSequenceResponse* response) {
  absl::MutexLock lock(&mutex_);
  if (dead_) return ToGrpcStatus(absl::UnavailableError("gone"));
  const absl::StatusOr<FakeSequence*> found = Find(request->sequence());
  if (!found.ok()) return ToGrpcStatus(found.status());
  response->set_first_token((*found)->first_token());
  response->set_covered_tokens((*found)->covered());
  response->set_reserved_tokens((*found)->reserved());
  response->set_length_tokens((*found)->Length());
  return grpc::Status::OK;
}

grpc::Status FakeDecode::CloseSequences(grpc::ServerContext*,
                                        const v1::CloseSequencesRequest* request,
                                        v1::CloseSequencesResponse* response) {
  absl::MutexLock lock(&mutex_);
  uint32_t closed = 0;
  for (size_t at = 0; at + kKeyBytes <= request->sequences().size(); at += kKeyBytes) {
    closed += static_cast<uint32_t>(sequences_.erase(request->sequences().substr(at, kKeyBytes)));
  }
  response->set_closed(closed);
  return grpc::Status::OK;
}

}  // namespace cairn::testing
