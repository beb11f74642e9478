// cairnctl purge: removes what a broken worker wrote, and what others computed from it.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/ctl/command.h"
#include "client/ctl/each_node.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

// A point in time as people write it: a date with its time zone, or how long ago.
absl::StatusOr<absl::Time> Since(const CommandLine& line) {
  const std::string text = line.Get("since");
  if (!line.Given("since")) {
    return UsageError("--since: give a time (2026-01-31T08:00:00Z), how long ago (90m), or 'ever'");
  }
  if (text == "ever") return absl::UnixEpoch();
  absl::Duration ago;
  if (absl::ParseDuration(text, &ago) && ago >= absl::ZeroDuration()) return absl::Now() - ago;
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &error) && time >= absl::UnixEpoch()) {
    return time;
  }
  return UsageError(absl::StrCat("--since: '", text,
                                 "'; must be a time with its zone (2026-01-31T08:00:00Z), how long "
                                 "ago (90m, 24h), or 'ever'"));
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const std::string writer = line.Get("writer");
  if (writer.empty()) {
    return UsageError("--writer: give the identity of the worker, as in the access file");
  }
  const absl::StatusOr<absl::Time> since = Since(line);
  if (!since.ok()) return since.status();
  return AskEachNode(line, streams, [&](CacheNodeClient& node) -> absl::StatusOr<Json> {
    const absl::StatusOr<v1::PurgeWriterResponse> purged = node.PurgeWriter(writer, *since);
    if (!purged.ok()) return purged.status();
    return Json{{"writer", writer},
                {"since", absl::FormatTime(absl::RFC3339_sec, *since, absl::UTCTimeZone())},
                {"blocks_removed", purged->blocks()},
                {"done", purged->done()}};
  });
}

}  // namespace

Command PurgeCommand() {
  return {
      .name = "purge",
      .summary =
          "removes what a worker wrote since some time, and all that was computed from "
          "it, from each node given",
      .flags = WithCommonFlags(
          {{"writer", "IDENTITY", "", "whose blocks: as the access file and audit lines say it"},
           {"since", "TIME", "", "2026-01-31T08:00:00Z, or how long ago (90m), or ever"},
           NodeListFlag()},
          /*asks_node=*/false),
      .run = Run};
}

}  // namespace cairn::ctl
