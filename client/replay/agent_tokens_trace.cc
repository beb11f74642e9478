#include "client/replay/agent_tokens_trace.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/replay/json_fields.h"
#include "common/base/check.h"

namespace cairn::replay {

AgentTokensTrace::AgentTokensTrace(std::unique_ptr<LineReader> lines)
    : LineTrace(std::move(lines)) {}

absl::StatusOr<AgentTokensTrace::Entry> AgentTokensTrace::ParseEntry(
    const nlohmann::json& object) const {
  const auto last = static_cast<int64_t>(entries_.size()) - 1;
  absl::StatusOr<int64_t> ref = SignedField(object, "ref", -1, last);
  if (!ref.ok()) return ref.status();
  Entry entry;
  uint64_t keep_max = 0;
  if (*ref >= 0) {
    entry.ref = static_cast<size_t>(*ref);
    keep_max = entries_[entry.ref].keep + entries_[entry.ref].add.size();
  }
  absl::StatusOr<uint64_t> keep = UnsignedField(object, "keep", keep_max);
  if (!keep.ok()) return keep.status();
  entry.keep = *keep;
  absl::StatusOr<std::vector<uint64_t>> add = UnsignedArrayField(object, "add", UINT32_MAX);
  if (!add.ok()) return add.status();
  entry.add.reserve(add->size());
  for (const uint64_t token : *add) entry.add.push_back(static_cast<uint32_t>(token));
  return entry;
}

std::vector<uint32_t> AgentTokensTrace::PromptOf(const Entry& entry) const {
  std::vector<uint32_t> tokens(entry.keep + entry.add.size());
  // Backwards through the references: each gives what of its own addition is still missing.
  const Entry* from = &entry;
  size_t missing = tokens.size();
  while (true) {
    if (missing > from->keep) {
      const size_t count = missing - from->keep;
      CAIRN_CHECK(count <= from->add.size());
      std::copy_n(from->add.begin(), count,
                  tokens.begin() + static_cast<std::ptrdiff_t>(from->keep));
      missing = from->keep;
    }
    if (missing == 0) return tokens;
    from = &entries_[from->ref];
  }
}

absl::StatusOr<TraceRequest> AgentTokensTrace::Parse(absl::string_view line,
                                                     uint64_t /*line_number*/) {
  absl::StatusOr<nlohmann::json> object = ParseObject(line);
  if (!object.ok()) return object.status();
  absl::StatusOr<double> microseconds = NumberField(*object, "t");
  if (!microseconds.ok()) return microseconds.status();
  absl::StatusOr<uint64_t> output = UnsignedField(*object, "o", UINT32_MAX);
  if (!output.ok()) return output.status();
  absl::StatusOr<Entry> entry = ParseEntry(*object);
  if (!entry.ok()) return entry.status();
  absl::Status valid = ValidateTokenCount(entry->keep + entry->add.size());
  if (!valid.ok()) return valid;
  tokens_kept_ += entry->add.size();
  if (tokens_kept_ > kTokensKeptMax) {
    return absl::ResourceExhaustedError(absl::StrCat("the prompts so far added ", tokens_kept_,
                                                     " tokens; at most ", kTokensKeptMax,
                                                     " are kept for later lines to refer to"));
  }
  TraceRequest request;
  if (const auto source = object->find("s"); source != object->end()) {
    if (!source->is_string()) return absl::InvalidArgumentError("\"s\" is not a string");
    request.source = source->get<std::string>();
  }
  request.arrival_s = *microseconds / 1e6;
  request.output_tokens = *output;
  request.prompt = TracePrompt::FromTokens(PromptOf(*entry));
  entries_.push_back(*std::move(entry));
  return request;
}

}  // namespace cairn::replay
