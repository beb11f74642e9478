// Labels: what an operator says of a node, key=value, for requests to choose by.
//
// A key stands once in a list. Bounds: route_limits.h. Failures are INVALID_ARGUMENT and name the
// label. Pure functions.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cairn/v1/label.pb.h"

namespace cairn {

struct Label {
  std::string key;
  std::string value;

  friend bool operator==(const Label&, const Label&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Label& label) {
    return H::combine(std::move(state), label.key, label.value);
  }
};

// "key=value".
std::string LabelText(const Label& label);

// Of one label: that key and value are of the bytes and lengths that are allowed.
absl::Status CheckLabel(absl::string_view key, absl::string_view value);
// Of a list: each label, how many, and that no key stands twice.
absl::Status CheckLabels(absl::Span<const Label> labels);

// Each text is "key=value".
absl::StatusOr<std::vector<Label>> LabelsFromText(absl::Span<const std::string> texts);
absl::StatusOr<std::vector<Label>> LabelsFromProto(
    const google::protobuf::RepeatedPtrField<v1::Label>& labels);
void LabelsToProto(absl::Span<const Label> labels,
                   google::protobuf::RepeatedPtrField<v1::Label>* messages);

}  // namespace cairn
