#include "cache_node/decode/engine/item_checks.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/wire/decode_limits.h"
#include "kernels/attention/attention.h"

namespace cairn::node {
namespace {

// What an item takes beside its rows.
constexpr uint64_t kItemBytes = sizeof(DecodeItem) + sizeof(DecodeResult) + 256;

// Of the items before, and this one.
struct Sums {
  uint64_t rows = 0;
  uint64_t request_bytes = 0;
  uint64_t result_bytes = 0;
};

// What it holds in memory, wrong or not.
uint64_t BytesOf(const DecodeItem& item) {
  return kItemBytes + item.queries.size() + item.keys.size() + item.values.size() +
         item.tokens.size() * sizeof(uint32_t);
}

absl::Status CheckSize(absl::string_view field, uint64_t size, uint64_t rows, uint64_t row_bytes) {
  if (size == rows * row_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", size, " bytes, must be ",
                                                 rows * row_bytes, " for ", rows, " rows of ",
                                                 row_bytes));
}

absl::Status CheckTarget(const DecodeItem& item) {
  if (item.target == DecodeItem::Target::kNone) {
    return absl::InvalidArgumentError(
        "target: none; name blocks of a lease, or a sequence where there may be one");
  }
  const bool appends = !item.keys.empty() || !item.values.empty() || !item.tokens.empty();
  if (item.target == DecodeItem::Target::kLeased && appends) {
    return absl::InvalidArgumentError(
        "keys, values, tokens: leased blocks are immutable; append to a sequence");
  }
  if (item.queries.empty() && !appends) {
    return absl::InvalidArgumentError("queries: none, and nothing to append; ask for something");
  }
  return absl::OkStatus();
}

absl::Status CheckRows(const AttendShape& shape, const DecodeItem& item) {
  if (item.rows == 0) return absl::InvalidArgumentError("rows: 0, must be at least 1");
  if (item.rows > kDecodeRowsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows: ", item.rows, ", at most ", kDecodeRowsMax, " a request"));
  }
  if (item.position > kernels::kKvTokensMax - item.rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("position: ", item.position, ", at most ", kernels::kKvTokensMax));
  }
  if (!item.queries.empty()) {
    absl::Status status =
        CheckSize("queries", item.queries.size(), item.rows, shape.QueryRowBytes());
    if (!status.ok()) return status;
  }
  if (item.keys.empty() && item.values.empty() && item.tokens.empty()) return absl::OkStatus();
  absl::Status status = CheckSize("keys", item.keys.size(), item.rows, shape.KeyRowBytes());
  if (status.ok()) {
    status = CheckSize("values", item.values.size(), item.rows, shape.ValueRowBytes());
  }
  if (status.ok() && !item.tokens.empty() && item.tokens.size() != item.rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokens: ", item.tokens.size(), " for ", item.rows, " rows; one a row"));
  }
  return status;
}

absl::Status CheckSums(const AttendShape& shape, const DecodeItem& item, Sums* sums) {
  Sums with = *sums;
  with.rows += item.rows;
  with.request_bytes += item.queries.size() + item.keys.size() + item.values.size();
  if (!item.queries.empty()) {
    with.result_bytes += item.rows * (shape.OutputRowBytes() + shape.LogSumExpRowBytes());
  }
  if (with.rows > kDecodeRowsMax || with.request_bytes > kDecodePayloadBytesMax ||
      with.result_bytes > kDecodePayloadBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("with the items before: ", with.rows, " rows, ", with.request_bytes,
                     " bytes of rows, ", with.result_bytes,
                     " bytes of results; a request has at most ", kDecodeRowsMax, " rows and ",
                     kDecodePayloadBytesMax, " bytes either way: ask for the rest in another one"));
  }
  *sums = with;
  return absl::OkStatus();
}

absl::Status CheckItem(const AttendShape& shape, const DecodeItem& item, Sums* sums) {
  if (absl::Status status = CheckTarget(item); !status.ok()) return status;
  if (absl::Status status = CheckRows(shape, item); !status.ok()) return status;
  if (!AllFinite(shape.row_dtype, item.queries.data(),
                 item.queries.size() * 8 / kernels::BitsOf(shape.row_dtype))) {
    return absl::InvalidArgumentError("queries: not all of them are finite numbers");
  }
  return CheckSums(shape, item, sums);
}

}  // namespace

void CheckItems(DecodeStep* step) {
  CAIRN_CHECK(step->results.size() == step->items.size());
  const absl::Status layer = CheckLayer(*step->shape, step->layer);
  Sums sums;
  step->request_bytes = 0;
  for (size_t i = 0; i < step->items.size(); ++i) {
    step->request_bytes += BytesOf(step->items[i]);
    absl::Status& status = step->results[i].status;
    if (!status.ok()) continue;
    if (i >= kDecodeItemsMax) {
      status = absl::InvalidArgumentError(
          absl::StrCat("items: this is number ", i, " from 0, a request has at most ",
                       kDecodeItemsMax, ": ask for the rest in another one"));
    } else {
      status = layer.ok() ? CheckItem(*step->shape, step->items[i], &sums) : layer;
    }
  }
  step->result_bytes = sums.result_bytes;
}

}  // namespace cairn::node
