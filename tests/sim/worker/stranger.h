// Stranger: a caller that is up to no good, and an operator that removes things. Every now and then
// one call at a random node.
//
// It asks for keys of others, names leases and tokens of others, reports blocks that are good, and,
// as operator or tenant, deletes blocks, clears scopes and retires namespaces. It looks at no
// answer: invariants do. Its host does not die. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "tests/sim/fleet_view.h"
#include "tests/sim/network/unary_call.h"
#include "tests/sim/truth.h"
#include "tests/sim/worker/get_call.h"

namespace cairn::sim {

class Stranger {
 public:
  struct Options {
    HostId host = 0;
    HostId router = 0;
    // By place.
    std::vector<HostId> nodes;
    absl::Duration pause_most = absl::Milliseconds(600);
    // Of a call that removes, in ten thousand.
    uint32_t removes_chance = 2500;
  };

  // Borrows all.
  Stranger(World* world, const Options& options, const PromptBook* book, const Truth* truth,
           const FleetView* fleet);

  void Stop() { stopped_ = true; }

 private:
  // A Get and where its bytes go.
  struct Get {
    std::vector<uint8_t> memory;
    std::unique_ptr<GetCall> call;
  };

  void ActSoon();
  void Act();
  void Remove();
  void Pry();
  void AskForKeys(const SimPrompt& prompt);
  void TouchLease(const std::string& lease);
  void TouchToken(const std::string& token);
  void ReportGoodBlock(const SimPrompt& prompt);
  void GetKeys(const SimPrompt& prompt, const std::optional<LeaseId>& lease);
  void Call(HostId to, Method method, const std::string& tenant, bool admin,
            const google::protobuf::MessageLite& request);

  const SimPrompt* AnyPrompt();
  std::string AnyTenant();
  ClientSide SideOf(const std::string& tenant, bool admin = false);

  World* const world_;
  const Options options_;
  const PromptBook* const book_;
  const Truth* const truth_;
  const FleetView* const fleet_;
  Dice dice_;
  bool stopped_ = false;
  size_t place_ = 0;  // Of the node that the next call goes to.
  uint64_t next_call_ = 0;
  absl::btree_map<uint64_t, std::unique_ptr<UnaryCall>> calls_;
  absl::btree_map<uint64_t, std::unique_ptr<Get>> gets_;
};

}  // namespace cairn::sim
