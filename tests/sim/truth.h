// Truth: what was committed where, and what is held, as the calls that nodes answered say.
//
// It bounds what a node may show from above (only what was committed in this life and not removed
// by anyone's will since: a cache may forget the rest) and from below (what is leased is there
// until the lease can be over). A witness; invariants ask it, so it is told first. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "cairn/v1/cache_node.pb.h"
#include "tests/sim/event_log.h"
#include "tests/sim/witness.h"
#include "tests/sim/worker/prompt_book.h"

namespace cairn::sim {

class Truth final : public Witness {
 public:
  // A block of one namespace and tenant.
  struct BlockName {
    Fingerprint fingerprint;
    std::string tenant;
    BlockKey key;

    friend bool operator<(const BlockName& a, const BlockName& b) {
      return std::tie(a.fingerprint, a.tenant, a.key) < std::tie(b.fingerprint, b.tenant, b.key);
    }
  };
  struct Lease {
    std::string tenant;
    Fingerprint fingerprint;
    std::set<BlockKey> keys;
    std::vector<bool> reader_ended;
    // By the node's guarded clock: before it, no share that did not end is over.
    absl::Time certain_until;
    // A block of it was removed by someone's will, or one reader ended: nothing is certain.
    bool doubtful = false;
  };
  struct Token {
    std::string tenant;
    Fingerprint fingerprint;
    std::vector<BlockKey> keys;
    std::vector<bool> reserved;
    // By block: the required segments that are not committed.
    std::vector<std::set<size_t>> missing;
  };
  // What the guarded clock of a node shows.
  using GuardedNow = std::function<absl::Time(const Life&)>;

  // Borrows book and log; the log gets what is committed and removed.
  Truth(const PromptBook* book, EventLog* log, GuardedNow guarded_now);

  void OnNodeDied(const Life& node) override { nodes_.erase(node); }
  void OnNodeCall(const SeenCall& call) override;
  void OnPulled(const SeenPull& pull) override;
  void OnDamaged(const Life& node, const BlockKey& key) override;

  // Committed in this life, and not removed since.
  bool MayBeThere(const Life& node, const BlockName& block) const;
  // Was committed once, and removed by someone's will.
  bool WasRemoved(const Life& node, const BlockName& block) const;
  // A byte of it was changed in memory, in some life.
  bool Damaged(const BlockKey& key) const { return damaged_.contains(key); }
  // Null when the lease is not known.
  const Lease* FindLease(const Life& node, const std::string& lease) const;
  const Token* FindToken(const Life& node, const std::string& token) const;
  // Ids of all that the node gave out in this life.
  std::vector<std::string> LeasesOf(const Life& node) const;
  std::vector<std::string> TokensOf(const Life& node) const;
  uint64_t blocks_committed() const { return blocks_committed_; }

 private:
  struct Node {
    std::set<BlockName> there;
    std::set<BlockName> removed;
    std::map<std::string, Token> tokens;
    std::map<std::string, Lease> leases;
  };

  void Take(const SeenCall& call, const v1::ReserveRequest& request,
            const v1::ReserveResponse& response);
  void Take(const SeenCall& call, const v1::CommitRequest& request,
            const v1::CommitResponse& response);
  void Take(const SeenCall& call, const v1::LookupRequest& request,
            const v1::LookupResponse& response);
  void Take(const SeenCall& call, const v1::EndLeaseRequest& request);
  void TakeRemoval(const SeenCall& call);
  void VoidReserved(Node* node, const Fingerprint& fingerprint, const std::string& tenant,
                    const BlockKey& scope_digest) const;
  void Note(const Life& life, const char* what, const BlockName& block) const;
  template <typename Match>
  void Remove(const Life& life, const Match& match);

  const PromptBook* const book_;
  EventLog* const log_;
  const GuardedNow guarded_now_;
  std::map<Life, Node> nodes_;
  std::set<BlockKey> damaged_;
  uint64_t blocks_committed_ = 0;
};

// Keys of each prompt of the lookup.
std::vector<std::vector<BlockKey>> KeysOfLookup(const PromptBook& book,
                                                const v1::LookupRequest& request);

}  // namespace cairn::sim
