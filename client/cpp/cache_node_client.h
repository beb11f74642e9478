// CacheNodeClient: everything that a program asks of one cache node.
//
// Small calls, payload and the feed go over connections of their own. Every call has a deadline.
// Calls that are safe to repeat are repeated when the node cannot be reached, within their deadline
// and under the same request id (retry_policy.h). A miss is no error. Failures are the contract's
// codes: INVALID_ARGUMENT for what is wrong in the call, FAILED_PRECONDITION for a namespace that
// is not registered or bound to other fields, RESOURCE_EXHAUSTED with a retry delay
// (retry_status.h), ABORTED for a lease or token that is over, UNAVAILABLE, DEADLINE_EXCEEDED;
// INTERNAL when the node's answer breaks the contract.
//
// Thread-safe. Calls block the caller. Sessions, leases and watchers made here borrow it: it
// outlives them. It does not route between nodes, and keeps no block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/v1/cache_node.pb.h"
#include "client/cpp/block_reader.h"
#include "client/cpp/block_watcher.h"
#include "client/cpp/client_options.h"
#include "client/cpp/client_parts.h"
#include "client/cpp/get_result.h"
#include "client/cpp/local/in_place_blocks.h"
#include "client/cpp/local/local_stats.h"
#include "client/cpp/lookup_types.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/node_link.h"
#include "client/cpp/prompt.h"
#include "client/cpp/pull_answer.h"
#include "client/cpp/put_types.h"
#include "client/cpp/read_lease.h"
#include "client/cpp/write_session.h"
#include "common/identity/block_hasher.h"

namespace cairn {

class CacheNodeClient {
 public:
  // Borrows the parts; they outlive it. REQUIRES: ValidateClientOptions says OK.
  CacheNodeClient(const ClientOptions& options, const ClientParts& parts);

  CacheNodeClient(const CacheNodeClient&) = delete;
  CacheNodeClient& operator=(const CacheNodeClient&) = delete;

  // Binds `name` to the fields within the caller's tenant. FAILED_PRECONDITION, saying both, when
  // it is bound to others.
  absl::StatusOr<NamespaceHandle> RegisterNamespace(const std::string& name,
                                                    const Namespace& fields);
  // Admin. Done when no call can return the namespace's bytes any more.
  absl::StatusOr<v1::RetireNamespaceResponse> RetireNamespace(const Fingerprint& fingerprint);
  // Admin. What others computed from it goes too. UNAVAILABLE: some may be left, repeat the call.
  absl::StatusOr<v1::PurgeWriterResponse> PurgeWriter(const std::string& writer, absl::Time since);
  // Removes every block of a scope of the caller's tenant.
  absl::StatusOr<v1::ClearScopeResponse> ClearScope(const Fingerprint& fingerprint,
                                                    const Scope& scope);

  // A prompt with its keys (prompt.h); asks nobody.
  absl::StatusOr<Prompt> MakePrompt(const NamespaceHandle& name_space,
                                    absl::Span<const Region> regions,
                                    const ExtrasByBlock& extras = {}) const;

  absl::StatusOr<LookupAnswer> Lookup(const NamespaceHandle& name_space,
                                      absl::Span<const Prompt> prompts,
                                      const LookupOptions& options = {});
  // State of a lease, after a wait for all its readers of at most `wait` (at most kWaitMsMax).
  absl::StatusOr<LeaseState> GetLease(const LeaseId& lease, absl::Duration wait = {});
  // A reader's share of a lease that somebody else took. Asks nobody.
  ReadLease JoinLease(const LeaseId& lease, uint32_t reader, size_t prompts);

  // Takes space for blocks [first_block, first_block + blocks) of the prompt, which lie in one
  // region. What the node answered for each is in the session, also when it reserved nothing.
  absl::StatusOr<WriteSession> Reserve(const NamespaceHandle& name_space, const Prompt& prompt,
                                       size_t first_block, size_t blocks,
                                       const ReserveOptions& options = {});
  // Another rank's session on the same token. Asks nobody.
  WriteSession AttachWrite(const NamespaceHandle& name_space, const WriteSession::Ticket& ticket);
  // Reserves, writes and commits every full block of the prompt that is not there yet. The source's
  // block is the index in the prompt. Blocks that another writer has in hand are left to it.
  absl::StatusOr<PutResult> Put(const NamespaceHandle& name_space, const Prompt& prompt,
                                SegmentSource source, const PutOptions& options = {});

  // Fetches segments into the caller's buffers and verifies every one against the key asked for.
  // Use what the result says is good, and nothing else. At most kKeysPerGetMax keys, no duplicates.
  GetResult Get(const NamespaceHandle& name_space, absl::Span<const BlockKey> keys,
                SegmentPlace place, const GetOptions& options = {});
  // Blocks of a prompt where they lie in the memory of a node on this host, consecutive ones from
  // the start, and no copy of them. With a lease, which must have them, its share is no longer
  // ended by time; without one a share of its own is taken. UNAVAILABLE where there is no such way:
  // then Get reads the same. Keys without duplicates.
  absl::StatusOr<InPlaceBlocks> ReadInPlace(const NamespaceHandle& name_space,
                                            absl::Span<const BlockKey> keys,
                                            const ReadLease* lease = nullptr);
  // How much went through memory.
  LocalStats local_stats() const;

  // Whether the node's own copy is bad too (and quarantined now).
  absl::StatusOr<bool> ReportMismatch(const Fingerprint& fingerprint, const BlockKey& key,
                                      const SegmentId& id);
  // One a key: whether a block was there and is gone. At most kKeysPerDeleteMax keys.
  absl::StatusOr<std::vector<bool>> Delete(const Fingerprint& fingerprint,
                                           absl::Span<const BlockKey> keys);

  // Pins blocks of the caller's tenant for so long, or ends their pins (zero): one outcome a key.
  // In the prompt's order from its start; at most kKeysPerPinMax keys.
  absl::StatusOr<std::vector<v1::PinOutcome>> PinBlocks(const Fingerprint& fingerprint,
                                                        absl::Span<const BlockKey> keys,
                                                        absl::Duration pin_for);

  // Has this node copy consecutive blocks of one region from its peer with the id `source`, and
  // waits for it at most kWaitMsMax. What was begun goes on without its caller; the same call says
  // how far it is. At most kKeysPerPullMax keys; the block before the first is there, or none is.
  absl::StatusOr<PullAnswer> PullBlocks(const Fingerprint& fingerprint, const std::string& source,
                                        absl::Span<const BlockKey> keys, absl::Duration wait);

  // Why the first block that the prompt misses on this node is not held (explain/miss_verdict.h
  // says what it amounts to). Sends tokens, where the prompt has them.
  absl::StatusOr<v1::ExplainPromptResponse> ExplainPrompt(const NamespaceHandle& name_space,
                                                          const Prompt& prompt);

  std::unique_ptr<BlockWatcher> WatchBlocks();
  absl::StatusOr<v1::DescribeResponse> Describe(bool with_shards = false);

 private:
  NodeLink link_;
  BlockReader reader_;
  const BlockHasher* hasher_;
};

}  // namespace cairn
