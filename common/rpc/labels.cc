#include "common/rpc/labels.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/wire/route_limits.h"

namespace cairn {
namespace {

bool IsAllowed(absl::string_view text) {
  if (text.empty() || text.size() > kLabelBytesMax) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("-_./:").find(c) != absl::string_view::npos;
  });
}

}  // namespace

std::string LabelText(const Label& label) { return absl::StrCat(label.key, "=", label.value); }

absl::Status CheckLabel(absl::string_view key, absl::string_view value) {
  if (IsAllowed(key) && IsAllowed(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("label \"", key.substr(0, kLabelBytesMax), "=", value.substr(0, kLabelBytesMax),
                   "\" (key of ", key.size(), " bytes, value of ", value.size(),
                   " bytes): each must be 1 to ", kLabelBytesMax, " letters, digits or -_./:"));
}

absl::Status CheckLabels(absl::Span<const Label> labels) {
  if (labels.size() > kLabelsMax) {
    return absl::InvalidArgumentError(absl::StrCat(labels.size(), " labels, at most ", kLabelsMax));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (absl::Status status = CheckLabel(labels[i].key, labels[i].value); !status.ok()) {
      return status;
    }
    for (size_t before = 0; before < i; ++before) {
      if (labels[before].key != labels[i].key) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("label \"", labels[i].key, "\" is given twice: ", LabelText(labels[before]),
                       " and ", LabelText(labels[i])));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Label>> LabelsFromText(absl::Span<const std::string> texts) {
  std::vector<Label> labels;
  for (const absl::string_view text : texts) {
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat("label \"", text, "\": must be key=value"));
    }
    labels.push_back({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  if (absl::Status status = CheckLabels(labels); !status.ok()) return status;
  return labels;
}

absl::StatusOr<std::vector<Label>> LabelsFromProto(
    const google::protobuf::RepeatedPtrField<v1::Label>& messages) {
  std::vector<Label> labels;
  for (const v1::Label& message : messages) labels.push_back({message.key(), message.value()});
  if (absl::Status status = CheckLabels(labels); !status.ok()) return status;
  return labels;
}

void LabelsToProto(absl::Span<const Label> labels,
                   google::protobuf::RepeatedPtrField<v1::Label>* messages) {
  for (const Label& label : labels) {
    v1::Label* message = messages->Add();
    message->set_key(label.key);
    message->set_value(label.value);
  }
}

}  // namespace cairn
