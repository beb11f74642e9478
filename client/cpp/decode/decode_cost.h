// Whether to send queries to the node that holds a prefix, or to fetch its blocks.
//
// Pure functions of bytes, rates and what is to come. Fetching pays once, with every byte of the
// prefix, and then attends at home; serving pays with each step: a round trip a layer, a query and
// an answer. Where the step at the node is no slower than at home, fetching never pays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cairn {

struct DecodeCostInputs {
  uint64_t prefix_tokens = 0;
  uint32_t layers = 0;
  // Of one token in one layer, as stored.
  double stored_bytes = 0;
  // Of one row, there and back.
  double query_bytes = 0;
  double answer_bytes = 0;

  // Tokens that are still to come, and how many sequences and draft tokens a step takes at once.
  uint64_t new_tokens = 0;
  double rows_per_step = 1;
  double tokens_per_step = 1;

  double round_trip_seconds = 0;
  double link_bytes_per_second = 0;
  // Stored bytes that attention reads, a second: at the node (all parts together), and at home.
  double node_bytes_per_second = 0;
  double local_bytes_per_second = 0;
  // Room at home for the fetched prefix.
  double local_bytes_free = 0;
};

enum class DecodeWay { kServe, kFetch };

const char* NameOf(DecodeWay way);

struct DecodeCost {
  DecodeWay way = DecodeWay::kServe;
  // For all new tokens.
  double serve_seconds = 0;
  double fetch_seconds = 0;
  double serve_bytes = 0;
  double fetch_bytes = 0;
  // From so many new tokens on fetching is the faster; nothing where it never is.
  std::optional<uint64_t> break_even_new_tokens;
  std::string why;  // One line.
};

// Rates of 0 are taken for infinitely fast. Ties are served: nothing has to be kept at home.
DecodeCost CompareDecodeCost(const DecodeCostInputs& inputs);

}  // namespace cairn
