// KubernetesSource: the nodes are the endpoints of a Kubernetes service, by list and watch of its
// EndpointSlices.
//
// Whatever fails, the last list stands and the server is asked again, after a backoff; where it
// names a time, not before that.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/random_source.h"
#include "common/server/line_log.h"
#include "router/membership/kubernetes/api_transport.h"
#include "router/membership/kubernetes/slice_watch.h"
#include "router/membership/member_source.h"
#include "router/membership/source_status.h"

namespace cairn::router {

class KubernetesSource final : public MemberSource {
 public:
  struct Options {
    SliceWatch::Options watch;
    absl::Duration list_timeout = absl::Seconds(15);
    // Of a watch, beyond what the server was asked to keep to.
    absl::Duration watch_slack = absl::Seconds(30);
    // Wait after an answer that was of no use, or a watch that ended early; doubles up to the bound
    // until a watch lasts longer than that.
    absl::Duration backoff_initial = absl::Milliseconds(200);
    absl::Duration backoff_max = absl::Seconds(10);
    // A server's wish to be left alone is heard as far as this.
    absl::Duration retry_after_max = absl::Seconds(60);
  };
  struct Parts {
    const Clock* clock = nullptr;
    RandomSource* random = nullptr;
    // Gets a line when the server cannot be asked for another reason than the last one, and when it
    // can again; or null.
    LineLog log;
  };

  KubernetesSource(Options options, std::unique_ptr<ApiTransport> transport, Parts parts);

  std::string name() const override;
  void Run(const WakeEvent& stop, const Listener& listener) override;
  Status status() const override { return status_.Get(); }

 private:
  class Reader;

  // One question, and whether its answer was what was asked for.
  absl::Status Ask(const WakeEvent& stop, const Listener& listener, absl::Duration* retry_after);
  void Tell(const Listener& listener);
  void NoteOk();
  void NoteFailure(const absl::Status& why);
  absl::Duration Jittered(absl::Duration wait) const;

  const Options options_;
  const std::unique_ptr<ApiTransport> transport_;
  const Parts parts_;
  SourceStatus status_;
  // Of the thread that runs.
  SliceWatch watch_;
  std::string logged_;
};

}  // namespace cairn::router
