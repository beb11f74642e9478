#include "client/cpp/decode/attend_result.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/rpc/retry_status.h"

namespace cairn {
namespace {

constexpr int kStatusCodeMax = 16;

absl::Status Broken(absl::string_view what) {
  return absl::InternalError(absl::StrCat("the node answered ", what));
}

std::vector<float> FloatsOf(const std::string& bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

absl::Status CheckSize(absl::string_view what, size_t bytes, uint64_t floats) {
  if (bytes == floats * sizeof(float)) return absl::OkStatus();
  return Broken(absl::StrCat(bytes, " bytes of ", what, " where ", floats * sizeof(float),
                             " were asked for"));
}

absl::Status CheckRow(uint64_t position, bool sees, const float* output, uint64_t columns,
                      float log_sum_exp) {
  if (!sees && log_sum_exp == -INFINITY) return absl::OkStatus();
  if (!std::isfinite(log_sum_exp) || !sees) {
    return Broken(absl::StrCat("a log-sum-exp of ", log_sum_exp, " at position ", position,
                               ", which sees ", sees ? "some" : "none", " of the tokens"));
  }
  if (std::all_of(output, output + columns, [](float x) { return std::isfinite(x); })) {
    return absl::OkStatus();
  }
  return Broken(absl::StrCat("an output that is not finite at position ", position));
}

}  // namespace

bool SeesAny(const v1::AttentionParameters& parameters, const TokenRange& tokens,
             uint64_t position) {
  const uint64_t end = std::min(tokens.end, position + 1);
  if (tokens.begin >= end) return false;
  const uint64_t window = parameters.window_tokens();
  if (window == 0 || tokens.begin < parameters.sink_tokens()) return true;
  return window > position + 1 - end;
}

absl::Status ItemStatus(const v1::AttendResult& result) {
  if (result.code() == 0) return absl::OkStatus();
  const bool known = result.code() > 0 && result.code() <= kStatusCodeMax;
  absl::Status status(
      known ? static_cast<absl::StatusCode>(result.code()) : absl::StatusCode::kUnknown,
      result.message());
  if (result.retry_ms() == 0) return status;
  return WithRetryAfter(status, absl::Milliseconds(result.retry_ms()));
}

absl::Status TakeResult(const v1::AttendResult& result, const v1::AttentionParameters& parameters,
                        const RowSizes& sizes, const AskedRows& asked, PartialRows* rows) {
  const uint64_t held = result.length_tokens();
  if (held != asked.tokens.end && !(asked.may_hold_more && held > asked.tokens.end)) {
    return Broken(absl::StrCat("for tokens up to ", held, " where those up to ", asked.tokens.end,
                               " were asked for"));
  }
  absl::Status status =
      CheckSize("output", result.output().size(), asked.rows * sizes.OutputFloats());
  if (status.ok()) {
    status = CheckSize("log-sum-exp", result.log_sum_exp().size(), asked.rows * sizes.query_heads);
  }
  if (!status.ok()) return status;
  PartialRows taken{FloatsOf(result.output()), FloatsOf(result.log_sum_exp())};
  for (uint64_t row = 0; row < asked.rows; ++row) {
    const uint64_t position = asked.position + row;
    const bool sees = SeesAny(parameters, asked.tokens, position);
    for (uint32_t head = 0; head < sizes.query_heads; ++head) {
      const uint64_t at = row * sizes.query_heads + head;
      status = CheckRow(position, sees, taken.output.data() + at * sizes.output_dim,
                        sizes.output_dim, taken.log_sum_exp[at]);
      if (!status.ok()) return status;
    }
  }
  *rows = std::move(taken);
  return absl::OkStatus();
}

}  // namespace cairn
