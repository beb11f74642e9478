// WriteOperations: from a claim on segments to their bytes being in, or given back.
//
// Begin and Finish are called under the store's lock, Verify between them without it: it reads the
// bytes that the claim pins. A segment that arrives in pieces stays its writer's between them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/store/store_state.h"
#include "cache_node/store/write_claim.h"

namespace cairn::node {

struct WriteOperations {
  static absl::StatusOr<WriteClaim> Begin(StoreState* state, TenantIndex tenant,
                                          const TokenId& token, uint64_t writer,
                                          const WritePiece& piece, absl::Time now);

  // Hashes what landed; INVALID_ARGUMENT naming the first layer whose digest is another.
  static absl::Status Verify(const WriteClaim& claim);

  // Without the lock: copies whole segments to where the claim says and hashes what is there then,
  // digests in `landed`. INVALID_ARGUMENT or, where they are in already with others, ABORTED.
  static absl::Status Land(WriteClaim* claim, absl::Span<const uint8_t> bytes,
                           std::vector<uint64_t>* landed);

  // Takes the claim's segments in when `verified` is OK and its token still lives, else gives them
  // back. The claim is spent.
  static absl::Status Finish(StoreState* state, WriteClaim* claim, const absl::Status& verified,
                             absl::Time now);
  static void Drop(StoreState* state, WriteClaim* claim);

  // Gives back what the writer began and did not finish.
  static void EndWriter(StoreState* state, const TokenId& token, uint64_t writer, absl::Time now);

  // The token if it may still be used: ABORTED, always alike, when not.
  static absl::StatusOr<Token*> UsableToken(const StoreState& state, TenantIndex tenant,
                                            const TokenId& token, absl::Time now);
};

}  // namespace cairn::node
