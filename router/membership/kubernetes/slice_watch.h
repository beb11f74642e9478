// SliceWatch: list and watch of a service's EndpointSlices, without a transport: what to ask the
// API server next, and what its answer means.
//
// A list comes in pages; what it says replaces what was known when its last page is in. Then a
// watch from the list's resource version, and the next one from that of the last event or bookmark.
// It lists anew when the server has forgotten that version (410), when an answer was no sense, and
// when watches keep failing: something may have been missed. What was known stays meanwhile. Not
// thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json_fwd.hpp"
#include "router/membership/kubernetes/line_splitter.h"
#include "router/membership/kubernetes/slice_set.h"
#include "router/membership/member.h"

namespace cairn::router {

class SliceWatch {
 public:
  // Slices in a page, bytes of a page, and of an event: a slice of 1,000 endpoints has under 1 MiB.
  static constexpr int kPageSlices = 20;
  static constexpr size_t kPageBytesMax = size_t{24} << 20;
  static constexpr size_t kEventBytesMax = size_t{2} << 20;
  // Pages of one list, though each may have few slices or none.
  static constexpr int kPagesMax = SliceSet::kSlicesMax;
  // Watches without an event that fail in a row before it lists anew.
  static constexpr int kFailedWatchesMax = 5;

  struct Options {
    std::string name_space;
    std::string service;
    std::string port_name;  // Empty: slices have one port.
    // After which the server is to end a watch: what broke without a word is noticed then.
    absl::Duration watch_for = absl::Minutes(2);
  };
  struct Question {
    std::string path;  // With the query, to append to the server's URL.
    bool is_watch = false;
  };

  explicit SliceWatch(Options options);

  Question Next() const;

  // The answer to Next: its status, then its body in pieces, then its end, each once and in this
  // order; `transport` is not OK when it broke off, and then the others may be missing. OnBytes is
  // not OK when the rest is of no use. OnEnd says whether the answer was what was asked for:
  // ABORTED for a version that is forgotten, INVALID_ARGUMENT for no sense, PERMISSION_DENIED for
  // what credentials do not allow, else UNAVAILABLE.
  void OnStatus(int http_status);
  absl::Status OnBytes(absl::string_view bytes);
  absl::Status OnEnd(const absl::Status& transport);

  // The nodes, when they differ from what was taken last. Nothing before the first list is whole.
  std::optional<MemberList> TakeChange();

 private:
  absl::Status TakeAnswer(const absl::Status& transport);
  absl::Status TakePage();
  absl::Status TakeEvent(absl::string_view line);
  absl::Status TakeObject(absl::string_view type, const nlohmann::json& object);
  absl::Status Refused(int code, absl::string_view message) const;
  void ListAnew();

  const Options options_;
  bool listing_ = true;
  SliceSet listed_;       // The pages so far.
  int pages_ = 0;         // So many.
  std::string continue_;  // Of the next page; empty for the first.
  std::string version_;   // To watch from.
  SliceSet slices_;       // As known.
  bool known_ = false;    // A list was whole.
  std::optional<MemberList> told_;
  int failed_watches_ = 0;  // In a row.

  // Of the answer that is coming.
  int http_status_ = 0;
  std::string body_;
  LineSplitter lines_{kEventBytesMax};
  absl::Status broken_;
};

}  // namespace cairn::router
