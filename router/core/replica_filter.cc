#include "router/core/replica_filter.h"

#include <algorithm>
#include <string>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cairn::router {
namespace {

// Of one label, in a message.
constexpr size_t kValuesNamedMost = 8;

bool HasLabel(const std::optional<v1::NodeInfo>& node, const Label& label) {
  if (!node.has_value()) return false;
  return std::any_of(node->labels().begin(), node->labels().end(), [&label](const auto& own) {
    return own.key() == label.key && own.value() == label.value;
  });
}

std::string ValuesOf(absl::string_view key, absl::Span<const v1::NodeInfo* const> nodes) {
  absl::btree_set<absl::string_view> values;
  for (const v1::NodeInfo* node : nodes) {
    for (const v1::Label& label : node->labels()) {
      if (label.key() == key) values.insert(label.value());
    }
  }
  if (values.empty()) return absl::StrCat("no node has a label \"", key, "\"");
  std::vector<absl::string_view> named;
  for (const absl::string_view value : values) {
    if (named.size() < kValuesNamedMost) named.push_back(value);
  }
  return absl::StrCat("of \"", key, "\" there are ", absl::StrJoin(named, ", "),
                      named.size() < values.size()
                          ? absl::StrCat(" and ", values.size() - named.size(), " more")
                          : "");
}

}  // namespace

bool HasLabels(const std::optional<v1::NodeInfo>& node, absl::Span<const Label> required) {
  return std::all_of(required.begin(), required.end(),
                     [&node](const Label& label) { return HasLabel(node, label); });
}

double LackingLabelSeconds(const std::optional<v1::NodeInfo>& node,
                           absl::Span<const PreferredLabel> preferred) {
  double seconds = 0;
  for (const PreferredLabel& wish : preferred) {
    if (!HasLabel(node, wish.label)) seconds += wish.seconds;
  }
  return seconds;
}

bool IsExcluded(absl::string_view worker_address, absl::Span<const absl::string_view> excluded) {
  return std::find(excluded.begin(), excluded.end(), worker_address) != excluded.end();
}

absl::Status NoneHasLabels(absl::Span<const Label> required,
                           absl::Span<const v1::NodeInfo* const> nodes) {
  std::vector<std::string> labels;
  std::vector<std::string> values;
  for (const Label& label : required) {
    labels.push_back(LabelText(label));
    values.push_back(ValuesOf(label.key, nodes));
  }
  return absl::FailedPreconditionError(absl::StrCat("required_labels: no replica has ",
                                                    absl::StrJoin(labels, " and "), "; ",
                                                    absl::StrJoin(values, "; ")));
}

}  // namespace cairn::router
