// Promises held against every sequence of packets: each is answered or is not, as its kind says; an
// answer fits into a packet with its descriptors; places lie within the memory that was given, and
// are only of this tenant; at the end of the connection nothing is held, and the store's audit
// agrees.
#include "tests/fuzz/local_session_fuzz.h"

#include <atomic>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "cache_node/local/local_session.h"
#include "common/base/check.h"
#include "common/local/local_limits.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::testing {
namespace {

using node::LocalSession;
using node::TestPrompt;
using node::TestStore;
using node::TestStoreOptions;

constexpr uint64_t kBlockBytes = 4096;
constexpr size_t kBlocks = 4;
constexpr node::BorrowerId kBorrower = 9;
constexpr uint64_t kStagingBytes = 64 << 10;

// One connection, and what it was answered.
class Connection {
 public:
  Connection() : staging_(kStagingBytes) {
    store_.Register(TestStore::Shape(kBlockBytes));
    prompt_ = store_.Prompt("t", 1, kBlocks);
    CAIRN_CHECK(store_.Put(prompt_) == kBlocks);
    const TestPrompt others = store_.Prompt("u", 2, kBlocks);
    CAIRN_CHECK(store_.Put(others) == kBlocks);
    const auto reserved = store_.Reserve(store_.Prompt("t", 3, 2));
    CAIRN_CHECK_OK(reserved.status());
    token_ = *reserved->token;
    keys_ = prompt_.keys;
    keys_.insert(keys_.end(), others.keys.begin(), others.keys.end());
    LocalSession::Parts parts;
    parts.store = store_.store.get();
    parts.rates = &rates_;
    parts.staging = &staging_;
    parts.counters = &counters_;
    parts.time = &store_.time;
    parts.draining = &draining_;
    Caller caller{.id = "worker", .tenant = "t", .roles = {Role::kWorker}};
    session_ = std::make_unique<LocalSession>(parts, std::move(caller), kBorrower);
  }
  ~Connection() {
    session_.reset();
    CAIRN_CHECK(counters_.shares == 0 && staging_.bytes() == 0);
    CAIRN_CHECK(store_.store->Status().leases == 0);
    CAIRN_CHECK_OK(store_.store->Audit());
    store_.store->ReturnAllSegments(kBorrower);
    CAIRN_CHECK(store_.store->Loans().lent_segments == 0);
  }

  // Whether it came to more than a failure.
  bool Say(v1::LocalRequest request) {
    FillIn(&request);
    const LocalSession::Reply reply = session_->Handle(request);
    const bool answered = !request.has_end() && !request.has_unmapped();
    CAIRN_CHECK(answered == (reply.answer != nullptr));
    if (!answered) return true;
    CAIRN_CHECK(reply.answer->ByteSizeLong() <= kLocalPacketBytesMax);
    CAIRN_CHECK(reply.segments.size() <= kLocalSegmentsPerAnswerMax);
    if (reply.answer->has_places()) CheckPlaces(request.read().keys(), reply);
    if (reply.answer->has_staged() && reply.answer->staged().bytes() > 0) {
      CAIRN_CHECK(reply.staging != nullptr);
    }
    return !reply.answer->has_failure();
  }

 private:
  void FillIn(v1::LocalRequest* request) {
    if (request->has_read()) {
      v1::LocalRead* read = request->mutable_read();
      if (read->fingerprint().empty()) {
        read->set_fingerprint(std::string(store_.fingerprint().view()));
      }
      if (read->lease().size() == 1) read->set_lease(lease_);
      if (read->keys().size() % kKeyBytes != 0 && read->keys().size() <= 2 * kBlocks) {
        std::string keys;
        for (const char c : read->keys()) {
          absl::StrAppend(&keys, keys_[static_cast<uint8_t>(c) % keys_.size()].view());
        }
        read->set_keys(keys);
      }
    }
    if (request->has_end() && request->end().lease().size() == 1) {
      request->mutable_end()->set_lease(lease_);
    }
    if (request->has_put() && request->put().token().size() == 1) {
      request->mutable_put()->set_token(std::string(token_.view()));
    }
  }

  void CheckPlaces(absl::string_view keys, const LocalSession::Reply& reply) {
    const v1::LocalPlaces& places = reply.answer->places();
    CAIRN_CHECK(places.segments_size() == static_cast<int>(reply.segments.size()));
    for (const v1::LocalSegment& segment : places.segments()) given_.insert(segment.id());
    if (!places.lease().empty()) lease_ = places.lease();
    CAIRN_CHECK(places.places_size() * kKeyBytes == keys.size());
    for (size_t i = 0; i < keys.size() / kKeyBytes; ++i) {
      const v1::LocalPlace& place = places.places(static_cast<int>(i));
      if (place.state() != v1::BLOCK_STATE_UNSPECIFIED) continue;
      CAIRN_CHECK(given_.contains(place.segment()) && place.digests_size() == 1);
      const BlockKey key = *BlockKey::FromBytes(keys.substr(i * kKeyBytes, kKeyBytes));
      const auto own = keys_.begin() + kBlocks;
      CAIRN_CHECK_MSG(std::find(keys_.begin(), own, key) != own, "another tenant's block");
    }
  }

  TestStore store_;
  node::TenantRates rates_{&store_.clock};
  node::StagingBudget staging_;
  node::LocalCounters counters_;
  std::atomic<bool> draining_{false};
  TestPrompt prompt_;
  std::vector<BlockKey> keys_;  // Of the tenant's own blocks, then of another's.
  TokenId token_;
  std::string lease_ = std::string(kKeyBytes, 'x');
  std::set<uint64_t> given_;
  std::unique_ptr<LocalSession> session_;
};

}  // namespace

std::string LocalFuzzInput(const std::vector<v1::LocalRequest>& requests) {
  std::string input;
  for (const v1::LocalRequest& request : requests) {
    const std::string packet = request.SerializeAsString();
    CAIRN_CHECK(packet.size() <= UINT16_MAX);
    input += static_cast<char>(packet.size() & 0xff);
    input += static_cast<char>(packet.size() >> 8);
    input += packet;
  }
  return input;
}

size_t RunLocalSession(const std::string& input) {
  Connection connection;
  size_t fruitful = 0;
  size_t at = 0;
  while (at + 2 <= input.size()) {
    const size_t size = static_cast<uint8_t>(input[at]) |
                        static_cast<size_t>(static_cast<uint8_t>(input[at + 1])) << 8;
    at += 2;
    v1::LocalRequest request;
    const std::string packet = input.substr(at, size);
    at += packet.size();
    // The server ends a connection that sends anything else.
    if (!request.ParseFromString(packet)) break;
    if (connection.Say(std::move(request))) ++fruitful;
  }
  return fruitful;
}

}  // namespace cairn::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cairn::testing::RunLocalSession(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
