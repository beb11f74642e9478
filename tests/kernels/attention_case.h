// AttentionCase: a small batch over random pages, run by any implementation: the CPU's paths, and
// the device's kernels as the grid executor runs them.
//
// Sequences take pages of one shuffled table in turn. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/cpu_path.h"
#include "tests/kernels/paged_kv.h"

namespace cairn::kernels {

struct AttentionResult {
  std::vector<float> output;       // [query][head][dim]
  std::vector<float> log_sum_exp;  // [query][head]
  uint32_t dim = 0;
};

struct CaseSequence {
  uint64_t kv_tokens = 0;
  std::vector<uint64_t> positions;  // Of its queries.
  uint64_t first_position = 0;
};

struct CaseOptions {
  KvShape shape;
  uint32_t query_heads = 1;
  uint32_t latent_value_dim = 0;
  KvDtype query_dtype = KvDtype::kBfloat16;
  float logit_soft_cap = 0;
  uint64_t window_tokens = 0;
  uint64_t sink_tokens = 0;
  float deviation = 1;       // Of keys, values and queries.
  uint64_t pages_total = 0;  // Of the pool; 0: as many as are used.
  uint64_t seed = 1;
  std::vector<CaseSequence> sequences;
};

// A query behind the last of `kv_tokens` stored tokens.
CaseSequence OneQuery(uint64_t kv_tokens);

// Heads, page and dims of one size for most tests.
KvShape ShapeOf(KvDtype dtype, uint32_t kv_heads, uint32_t page_tokens, uint32_t dim);

class AttentionCase;

// An implementation.
struct AttentionPath {
  std::string name;
  // On threads as many as `workers`, where it has any.
  std::function<Problem(AttentionCase& a_case, uint32_t workers)> run;
  // What is allowed against the reference: products of 16-bit floats or in float32.
  std::function<double(const KvShape& shape)> tolerance;
};

class AttentionCase {
 public:
  explicit AttentionCase(const CaseOptions& options);

  AttentionBatch& batch() { return batch_; }
  PagedKv& kv() { return *kv_; }
  // First page of sequence `i` within the table.
  uint64_t FirstPage(size_t i) const { return first_pages_[i]; }
  // Query row of one head, to be set by a test.
  std::vector<std::byte>& queries() { return queries_; }
  std::vector<AttentionSequence>& sequences() { return sequences_; }
  const std::vector<AttentionQuery>& query_list() const { return query_list_; }

  // Results are NaN before a run, so that what is not written shows.
  AttentionResult Run(const AttentionPath& path, uint32_t workers = 1);
  AttentionResult Reference();

 private:
  AttentionResult Start();

  CaseOptions options_;
  std::unique_ptr<PagedKv> kv_;
  std::vector<uint64_t> first_pages_;
  std::vector<std::byte> queries_;
  std::vector<AttentionQuery> query_list_;
  std::vector<AttentionSequence> sequences_;
  AttentionBatch batch_;
  AttentionResult result_;
};

AttentionPath PathOf(CpuPath path);
// The paths that this machine has.
std::vector<AttentionPath> AvailablePaths();
void PrintTo(const AttentionPath& path, std::ostream* stream);

// Checks each (query, head): relative error of its output, and its log-sum-exp.
void ExpectClose(const AttentionResult& result, const AttentionResult& reference, double tolerance);

// Bit for bit, NaNs included.
void ExpectIdentical(const AttentionResult& a, const AttentionResult& b);

}  // namespace cairn::kernels
