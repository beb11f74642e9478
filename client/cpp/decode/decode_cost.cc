#include "client/cpp/decode/decode_cost.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cairn {
namespace {

// Beyond this it is as good as never.
constexpr double kTokensMax = 1e15;

double SecondsOf(double bytes, double bytes_per_second) {
  return bytes_per_second > 0 ? bytes / bytes_per_second : 0;
}

}  // namespace

const char* NameOf(DecodeWay way) { return way == DecodeWay::kServe ? "serve" : "fetch"; }

DecodeCost CompareDecodeCost(const DecodeCostInputs& inputs) {
  const double layers = inputs.layers;
  const double rows = std::max(inputs.rows_per_step, 1.0);
  const double tokens = std::max(inputs.tokens_per_step, 1.0);
  const double layer_bytes = static_cast<double>(inputs.prefix_tokens) * inputs.stored_bytes;
  const double moved = rows * (inputs.query_bytes + inputs.answer_bytes);
  const double serve_step =
      layers * (inputs.round_trip_seconds + SecondsOf(moved, inputs.link_bytes_per_second) +
                SecondsOf(layer_bytes, inputs.node_bytes_per_second));
  const double local_step = layers * SecondsOf(layer_bytes, inputs.local_bytes_per_second);
  const double steps = std::ceil(static_cast<double>(inputs.new_tokens) / tokens);

  DecodeCost cost;
  cost.fetch_bytes = layers * layer_bytes;
  cost.serve_bytes = steps * layers * moved;
  const double fetch_once =
      inputs.round_trip_seconds + SecondsOf(cost.fetch_bytes, inputs.link_bytes_per_second);
  cost.serve_seconds = steps * serve_step;
  cost.fetch_seconds = fetch_once + steps * local_step;
  const bool fits = cost.fetch_bytes <= inputs.local_bytes_free;
  if (fits && serve_step > local_step) {
    const double most = std::floor(fetch_once / (serve_step - local_step) * tokens) + 1;
    if (most < kTokensMax) cost.break_even_new_tokens = static_cast<uint64_t>(most);
  }
  cost.way =
      fits && cost.fetch_seconds < cost.serve_seconds ? DecodeWay::kFetch : DecodeWay::kServe;
  if (!fits) {
    cost.why = absl::StrFormat("served: fetching needs %.0f bytes at home, where %.0f are free",
                               cost.fetch_bytes, inputs.local_bytes_free);
    return cost;
  }
  cost.why = absl::StrFormat(
      "%s: %d new tokens take %.4g s served (%.0f bytes moved) and %.4g s after a fetch of %.0f "
      "bytes; ",
      cost.way == DecodeWay::kServe ? "served" : "fetched", inputs.new_tokens, cost.serve_seconds,
      cost.serve_bytes, cost.fetch_seconds, cost.fetch_bytes);
  absl::StrAppend(&cost.why,
                  cost.break_even_new_tokens
                      ? absl::StrCat("even at ", *cost.break_even_new_tokens, " new tokens")
                      : "a step at the node is no slower than one at home");
  return cost;
}

}  // namespace cairn
