#include "common/security/file_watch_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace cairn {
namespace {

template <typename ValueOf>
std::vector<CallbackSample> Samples(const std::vector<const FileWatch*>& watches, ValueOf value) {
  std::vector<CallbackSample> samples;
  for (const FileWatch* watch : watches) {
    if (watch == nullptr) continue;
    for (const FileWatch::Counts& one : watch->counts()) samples.push_back({one.name, value(one)});
  }
  return samples;
}

}  // namespace

FileWatchMetrics::FileWatchMetrics(Metrics* metrics, absl::string_view prefix,
                                   std::vector<const FileWatch*> watches)
    : errors_(metrics->AddCallbackSeries(
          CallbackKind::kCounter, absl::StrCat(prefix, "_file_read_errors_total"),
          "Looks at a file, once a second, at which it could not be taken over.", "file", kFilesMax,
          [watches] {
            return Samples(watches, [](const FileWatch::Counts& one) {
              return static_cast<double>(one.errors);
            });
          })),
      good_(metrics->AddCallbackSeries(
          CallbackKind::kGauge, absl::StrCat(prefix, "_file_good_seconds"),
          "Unix time at which a file was good last.", "file", kFilesMax, [watches] {
            return Samples(watches, [](const FileWatch::Counts& one) {
              return absl::ToDoubleSeconds(one.good - absl::UnixEpoch());
            });
          })) {}

}  // namespace cairn
