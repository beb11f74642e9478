// DecodeDemo: one worker puts a prompt's prefix on nodes, another decodes over them.
//
// A small model with weights from a seed, so that the tokens can be held against those of a worker
// that computes everything by itself. What `cairnctl decode-demo` runs; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/cache_node_client.h"
#include "client/cpp/client_options.h"
#include "client/cpp/client_parts.h"
#include "client/cpp/decode/decode_client.h"
#include "client/cpp/decode/prefix_opening.h"
#include "client/replay/served/cold_prefill.h"
#include "client/replay/served/served_worker.h"

namespace cairn::ctl {

struct DecodeDemoOptions {
  std::string tenant;
  uint64_t seed = 1;
  uint32_t prompt_tokens = 1024;
  uint32_t new_tokens = 48;
  uint32_t block_tokens = 16;
  WayChoice way = WayChoice::kServe;
};

struct DecodeDemoReport {
  uint64_t blocks = 0;
  uint64_t block_bytes = 0;
  uint64_t blocks_put = 0;
  std::string form;  // "sequences", "leases" or "fetched".
  std::string why;   // Of leases: what the node said.
  DecodeCost cost;
  std::vector<std::string> places;
  double seconds = 0;  // Of the second worker's prefill and tokens.
  double tokens_per_second = 0;
  double alone_tokens_per_second = 0;
  SessionCounters session;
  uint64_t fetched_bytes = 0;
  uint64_t recomputed_tokens = 0;
  std::vector<uint32_t> tokens;
  std::vector<uint32_t> tokens_alone;

  uint64_t FetchBytes() const { return blocks * block_bytes; }
  uint64_t MovedBytes() const {
    return session.bytes_sent + session.bytes_received + fetched_bytes;
  }
  // Index of the first token that differs.
  std::optional<size_t> FirstDifference() const;
};

class DecodeDemo {
 public:
  using Say = std::function<void(const std::string& line)>;

  // One client's options for each node. Borrows parts; `say` gets a line now and then.
  DecodeDemo(const DecodeDemoOptions& options, const std::vector<ClientOptions>& nodes,
             const ClientParts& parts, Say say);

  // Statuses name the node that said no.
  absl::StatusOr<DecodeDemoReport> Run();

 private:
  struct Node {
    std::unique_ptr<CacheNodeClient> cache;
    std::unique_ptr<DecodeClient> decode;
  };

  absl::Status Prepare();
  absl::Status PutPrefix(DecodeDemoReport* report);
  // The prefix cut evenly over the nodes, the tail at the last one; or leases and no tail.
  std::vector<PartWish> Parts(PartForm form) const;
  DecodeCostInputs CostInputs() const;
  absl::Status OpenPrefix(const Prompt& prompt, DecodeSession* session,
                          replay::ServedAttention* attention, DecodeDemoReport* report);
  absl::Status DecodeOver(DecodeDemoReport* report);
  absl::Status DecodeAlone(DecodeDemoReport* report);

  const DecodeDemoOptions options_;
  const ClientParts parts_;
  const Say say_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> tokens_;
  std::optional<replay::Transformer> model_;
  std::optional<NamespaceHandle> name_space_;
  std::optional<Prompt> prompt_;
  std::unique_ptr<replay::ColdPrefill> cold_;
  double round_trip_seconds_ = 0;
  double link_bytes_per_second_ = 0;
};

}  // namespace cairn::ctl
