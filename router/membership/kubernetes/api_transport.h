// ApiTransport: GET requests to a Kubernetes API server.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/server/wake_event.h"

namespace cairn::router {

// Who reads an answer. Called on the thread that asks.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;

  // Once, before the body. `retry_after` is zero where the server did not say.
  virtual void OnStatus(int http_status, absl::Duration retry_after) = 0;
  // The body, in pieces. Not OK ends the answer.
  virtual absl::Status OnBytes(absl::string_view bytes) = 0;
};

class ApiTransport {
 public:
  virtual ~ApiTransport() = default;

  // For people: the server's URL.
  virtual std::string name() const = 0;
  // Returns when the answer has ended, whatever its HTTP status. Not OK: it broke off. CANCELLED as
  // soon as `stop` is set; DEADLINE_EXCEEDED after `timeout`; what the reader said; UNAVAILABLE
  // with the reason otherwise. On one thread at a time.
  virtual absl::Status Get(const std::string& path, absl::Duration timeout, const WakeEvent& stop,
                           AnswerReader* reader) = 0;
};

}  // namespace cairn::router
