// RandomCaller: one client's calls, drawn from a seed, each answer held against the contract.
//
// It leaves leases and tokens open as a careless client does, so that only their times to live end
// them. Callers of one node work on the same few prompts. Not thread-safe; borrows the client.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "client/cpp/cache_node_client.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {

class RandomCaller {
 public:
  // Time to live of its leases and tokens.
  static constexpr absl::Duration kTtl = absl::Milliseconds(400);

  RandomCaller(CacheNodeClient* client, NamespaceHandle name_space, uint64_t seed);

  // Makes the next call. Not OK when an answer broke the contract: wrong bytes, or a status that
  // this call cannot have.
  absl::Status Call();

  uint64_t blocks_read() const { return blocks_read_; }
  uint64_t blocks_committed() const { return blocks_committed_; }

 private:
  struct OpenLease {
    LeaseId id;
    uint32_t readers = 0;
    uint32_t prompt = 0;
  };

  uint32_t Below(uint32_t bound);
  NumberedPrompt PromptOf(uint32_t number) const;
  absl::Status CheckBytes(uint32_t number, const GetOptions& options);

  absl::Status Probe();
  absl::Status TakeLease();
  absl::Status ReadByLease();
  absl::Status ReadByKey();
  absl::Status AskLease();
  absl::Status RenewLease();
  absl::Status EndLease();
  absl::Status Reserve();
  absl::Status WriteSlice();
  absl::Status CommitSession();
  absl::Status AbortSession();
  absl::Status PutWhole();
  absl::Status DeleteSome();
  absl::Status ClearScope();
  absl::Status Describe();
  absl::Status AskNonsense();

  CacheNodeClient* client_;
  const NamespaceHandle name_space_;
  std::mt19937_64 random_;
  std::vector<OpenLease> leases_;
  std::vector<WriteSession> sessions_;
  uint64_t blocks_read_ = 0;
  uint64_t blocks_committed_ = 0;
};

}  // namespace cairn::testing
