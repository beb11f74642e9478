// Results of attention, checked before anything of them is used.
//
// A node's answer is not trusted: its sizes, what of a sequence it was computed over, and every
// number are held against what was asked. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "cairn/v1/decode.pb.h"
#include "client/cpp/decode/decode_types.h"
#include "client/cpp/decode/row_sizes.h"

namespace cairn {

// Rows of queries and the tokens that they were to be answered for.
struct AskedRows {
  TokenRange tokens;      // That the part holds, or more where `may_hold_more`.
  uint64_t position = 0;  // Of the first row.
  uint64_t rows = 0;
  bool may_hold_more = false;
};

// Copied out of a message: output [rows][query_heads][output_dim], log-sum-exp [rows][query_heads].
struct PartialRows {
  std::vector<float> output;
  std::vector<float> log_sum_exp;
};

// Whether a query at `position` sees any of `tokens`.
bool SeesAny(const v1::AttentionParameters& parameters, const TokenRange& tokens,
             uint64_t position);

// What the node said of this item: OK, or its code, message and delay (RetryAfter). UNKNOWN for a
// code that is none.
absl::Status ItemStatus(const v1::AttendResult& result);

// Fills `rows` from an item that was answered OK. INTERNAL, saying what is wrong, when it holds
// other than the tokens asked for, sizes differ, or a number is NaN or infinite where it must not
// be: log-sum-exp is -infinity for rows that see nothing, and for no others.
absl::Status TakeResult(const v1::AttendResult& result, const v1::AttentionParameters& parameters,
                        const RowSizes& sizes, const AskedRows& asked, PartialRows* rows);

}  // namespace cairn
