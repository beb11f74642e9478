#include "tests/cache_node/decode/engine/slot_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/attention/reference.h"
#include "kernels/quantize.h"

namespace cairn::node {

SlotPool::SlotPool(const Layout& layout, uint64_t seed)
    : map_(*PayloadMap::Make(layout)), random_(seed) {}

const std::byte* SlotPool::NewSlot() {
  slots_.push_back(std::make_unique<Line[]>(map_.block_bytes() / sizeof(Line)));
  std::byte* const slot = slots_.back()[0].bytes;
  for (const PayloadMap::Part& part : map_.parts()) {
    const Group& group = map_.layout().groups[part.group];
    if (group.dtype == Dtype::kOpaque) continue;
    const uint32_t slices = IsSliced(group.kind) ? map_.layout().slices : 1;
    for (uint32_t layer = 0; layer < part.layers; ++layer) {
      FillSegment(slot + part.offset + layer * part.segment_bytes, group, group.kv_heads / slices);
    }
  }
  return slot;
}

void SlotPool::FillTile(std::byte* tile, const Group& group, uint64_t elements) {
  std::normal_distribution<float> normal(0.0f, group.scales == ScaleKind::kNone ? 1.0f : 30.0f);
  std::vector<float> numbers(elements);
  for (float& number : numbers) number = normal(random_);
  kernels::Quantize(static_cast<kernels::KvDtype>(group.dtype), numbers.data(), elements, 1, tile);
}

void SlotPool::FillSegment(std::byte* segment, const Group& group, uint32_t kv_heads) {
  kernels::KvShape shape;
  shape.kv_heads = kv_heads;
  shape.page_tokens = map_.layout().block_tokens;
  shape.key_dim = group.key_dim;
  shape.value_dim = group.value_dim;
  shape.dtype = static_cast<kernels::KvDtype>(group.dtype);
  shape.scales = static_cast<kernels::KvScales>(group.scales);
  const kernels::KvSegment places = kernels::SegmentOf(shape);
  const uint64_t rows = uint64_t{kv_heads} * shape.page_tokens;
  FillTile(segment + places.key, group, rows * shape.key_dim);
  if (shape.value_dim > 0) FillTile(segment + places.value, group, rows * shape.value_dim);
  if (group.scales == ScaleKind::kNone) return;
  const uint64_t scales = group.scales == ScaleKind::kPerHead ? kv_heads : rows;
  for (const uint64_t at : {places.key_scales, places.value_scales}) {
    if (at == places.value_scales && shape.value_dim == 0) continue;
    for (uint64_t i = 0; i < scales; ++i) {
      const float scale = 0.02f + 0.01f * static_cast<float>(random_() % 4);
      std::memcpy(segment + at + i * sizeof(float), &scale, sizeof(scale));
    }
  }
}

TestRows SlotPool::NewRows(const AttendShape& shape, uint64_t position, uint32_t rows) {
  TestRows made;
  made.position = position;
  made.rows = rows;
  const uint64_t elements = uint64_t{rows} * shape.query_heads * shape.kv.key_dim;
  std::normal_distribution<float> normal;
  std::vector<float> numbers(elements);
  for (float& number : numbers) number = normal(random_);
  made.queries.resize(rows * shape.QueryRowBytes());
  kernels::Quantize(shape.row_dtype, numbers.data(), elements, 1, made.queries.data());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  made.output.assign(rows * shape.OutputRowElements(), nan);
  made.log_sum_exp.assign(uint64_t{rows} * shape.query_heads, nan);
  return made;
}

TestRows SlotPool::Reference(const AttendShape& shape, uint32_t layer, const SlotRun& run,
                             const TestRows& rows) {
  TestRows result = rows;
  for (uint32_t slice = 0; slice < shape.slices; ++slice) {
    std::vector<kernels::KvRegion> regions;
    std::vector<kernels::KvPage> pages;
    for (const std::byte* slot : run.slots) {
      pages.push_back({regions.size(), 0});
      if (slot == nullptr) {  // What no query sees.
        regions.push_back(regions.empty() ? kernels::KvRegion{} : regions.back());
      } else {
        regions.push_back({slot, shape.map->block_bytes()});
      }
    }
    for (kernels::KvRegion& region : regions) {
      if (region.base == nullptr) region = regions.back();
    }
    std::vector<kernels::AttentionQuery> queries;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      const uint64_t head =
          uint64_t{row} * shape.query_heads + uint64_t{slice} * shape.slice_query_heads;
      queries.push_back(
          {rows.position + row,
           rows.queries.data() + head * kernels::RowBytes(shape.row_dtype, shape.kv.key_dim),
           result.output.data() + head * shape.output_dim, result.log_sum_exp.data() + head});
    }
    kernels::AttentionSequence sequence;
    sequence.pages = pages.data();
    sequence.page_count = pages.size();
    sequence.kv_tokens = run.tokens;
    sequence.first_position = run.first_position;
    sequence.queries = queries.data();
    sequence.query_count = queries.size();
    kernels::AttentionBatch batch;
    batch.shape = shape.kv;
    batch.query_heads = shape.slice_query_heads;
    batch.latent_value_dim = shape.latent_value_dim;
    batch.query_dtype = shape.row_dtype;
    batch.softmax_scale = shape.softmax_scale;
    batch.logit_soft_cap = shape.logit_soft_cap;
    batch.window_tokens = shape.window_tokens;
    batch.sink_tokens = shape.sink_tokens;
    batch.regions = {regions.data(), regions.size(), shape.SegmentOffset(slice, layer)};
    batch.sequences = &sequence;
    batch.sequence_count = 1;
    const kernels::Problem problem = kernels::ReferenceAttention(batch);
    EXPECT_EQ(problem, "");
  }
  return result;
}

void ExpectNear(const TestRows& rows, const TestRows& reference, double tolerance) {
  ASSERT_EQ(rows.output.size(), reference.output.size());
  ASSERT_EQ(rows.log_sum_exp.size(), reference.log_sum_exp.size());
  const size_t dim = rows.output.size() / std::max<size_t>(rows.log_sum_exp.size(), 1);
  for (size_t head = 0; head < rows.log_sum_exp.size(); ++head) {
    const float expected = reference.log_sum_exp[head];
    if (std::isinf(expected)) {
      EXPECT_EQ(rows.log_sum_exp[head], expected) << "row head " << head;
    } else {
      EXPECT_NEAR(rows.log_sum_exp[head], expected, tolerance * (1 + std::abs(expected)))
          << "row head " << head;
    }
    double most = 1e-6;
    for (size_t d = 0; d < dim; ++d) {
      most = std::max<double>(most, std::abs(reference.output[head * dim + d]));
    }
    for (size_t d = 0; d < dim; ++d) {
      ASSERT_NEAR(rows.output[head * dim + d], reference.output[head * dim + d], tolerance * most)
          << "row head " << head << ", element " << d;
    }
  }
}

}  // namespace cairn::node
