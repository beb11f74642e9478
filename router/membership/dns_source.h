// DnsSource: the nodes are the addresses of a name, asked for again and again.
//
// A failure keeps the last list, for as long as it lasts, and the next question comes after the
// same interval. All nodes listen on one port.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/server/line_log.h"
#include "router/membership/member_source.h"
#include "router/membership/resolver.h"
#include "router/membership/source_status.h"

namespace cairn::router {

class DnsSource final : public MemberSource {
 public:
  struct Options {
    std::string host;
    uint16_t port = 0;
    absl::Duration interval = absl::Seconds(5);
  };

  // `log` may be null; gets a line when a question fails for another reason than the last one.
  DnsSource(Options options, std::unique_ptr<Resolver> resolver, LineLog log);

  std::string name() const override;
  void Run(const WakeEvent& stop, const Listener& listener) override;
  Status status() const override { return status_.Get(); }

 private:
  void NoteFailure(const absl::Status& why);

  const Options options_;
  const std::unique_ptr<Resolver> resolver_;
  const LineLog log_;
  SourceStatus status_;
  std::string logged_;  // The last reason; of the thread that runs.
};

}  // namespace cairn::router
