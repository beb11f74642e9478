#include "router/service/route_wishes.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/field_status.h"
#include "common/wire/limits.h"
#include "common/wire/route_limits.h"

namespace cairn::router {
namespace {

absl::Status ReadPreferred(const v1::RouteRequest& request, RouteWishes* wishes) {
  std::vector<Label> labels;
  for (const v1::PreferredLabel& wish : request.preferred_labels()) {
    labels.push_back({wish.label().key(), wish.label().value()});
  }
  if (absl::Status status = CheckLabels(labels); !status.ok()) return status;
  for (size_t i = 0; i < labels.size(); ++i) {
    const double seconds = request.preferred_labels(static_cast<int>(i)).seconds();
    if (!(seconds > 0) || seconds > kPreferredLabelSecondsMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", LabelText(labels[i]), " of ", seconds,
                       " seconds: must be above 0 and at most ", kPreferredLabelSecondsMax));
    }
    wishes->preferred_labels.push_back({std::move(labels[i]), seconds});
  }
  return absl::OkStatus();
}

absl::Status ReadExcluded(const v1::RouteRequest& request, RouteWishes* wishes) {
  const auto count = static_cast<size_t>(request.excluded_workers_size());
  if (count > kExcludedWorkersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " workers, at most ", kExcludedWorkersMax));
  }
  for (const std::string& worker : request.excluded_workers()) {
    if (worker.empty() || worker.size() > kNameBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "an address of ", worker.size(), " bytes; 1 to ", kNameBytesMax, " are allowed"));
    }
    wishes->excluded_workers.push_back(worker);
  }
  return absl::OkStatus();
}

}  // namespace

void RouteWishes::AddTo(RouteQuery* query) const {
  query->session = session;
  query->required_labels = required_labels;
  query->preferred_labels = preferred_labels;
  query->excluded_workers = excluded_workers;
  query->deadline = deadline;
}

absl::Status ReadWishes(const v1::RouteRequest& request, RouteWishes* wishes) {
  if (request.session_id().size() > kSessionIdBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("session_id: ", request.session_id().size(),
                                                   " bytes, at most ", kSessionIdBytesMax));
  }
  wishes->session = request.session_id();
  absl::StatusOr<std::vector<Label>> required = LabelsFromProto(request.required_labels());
  if (!required.ok()) return InField("required_labels", required.status());
  wishes->required_labels = *std::move(required);
  if (absl::Status status = ReadPreferred(request, wishes); !status.ok()) {
    return InField("preferred_labels", status);
  }
  if (absl::Status status = ReadExcluded(request, wishes); !status.ok()) {
    return InField("excluded_workers", status);
  }
  if (request.deadline_ms() > kRouteDeadlineMsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("deadline_ms: ", request.deadline_ms(), ", at most ", kRouteDeadlineMsMax));
  }
  if (request.deadline_ms() > 0) wishes->deadline = absl::Milliseconds(request.deadline_ms());
  return absl::OkStatus();
}

}  // namespace cairn::router
