#include "router/membership/kubernetes/slice_watch.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "router/membership/kubernetes/json_fields.h"

namespace cairn::router {
namespace {

using nlohmann::json;

constexpr int kOk = 200;
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kGone = 410;
// Of what the server said, in a message.
constexpr size_t kReasonBytesMax = 300;
// Of a body that is no answer, of which only a reason is wanted.
constexpr size_t kRefusalBytesMax = size_t{64} << 10;

// It goes into logs and messages, which take UTF-8 only.
std::string Readable(absl::string_view text) {
  std::string readable(text.substr(0, kReasonBytesMax));
  for (char& c : readable) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return readable;
}

// The same of a status, which says names that the server chose.
absl::Status Readable(const absl::Status& status) {
  return absl::Status(status.code(), Readable(status.message()));
}

std::string Escaped(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~') {
      escaped.push_back(c);
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", byte);
    }
  }
  return escaped;
}

// Of a Status object; of what is none, all of it.
std::string MessageOf(absl::string_view body) {
  const json status = json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  std::string message = StringOf(status, "message");
  return message.empty() ? std::string(body) : message;
}

}  // namespace

SliceWatch::SliceWatch(Options options) : options_(std::move(options)) {
  CAIRN_CHECK(!options_.name_space.empty() && !options_.service.empty());
  CAIRN_CHECK(options_.watch_for >= absl::Seconds(1));
}

SliceWatch::Question SliceWatch::Next() const {
  const std::string path =
      absl::StrCat("/apis/discovery.k8s.io/v1/namespaces/", Escaped(options_.name_space),
                   "/endpointslices?labelSelector=", Escaped("kubernetes.io/service-name="),
                   Escaped(options_.service));
  if (!listing_) {
    return {
        absl::StrCat(path, "&watch=1&allowWatchBookmarks=true&resourceVersion=", Escaped(version_),
                     "&timeoutSeconds=", absl::ToInt64Seconds(options_.watch_for)),
        /*is_watch=*/true};
  }
  const std::string page = absl::StrCat(path, "&limit=", kPageSlices);
  return {continue_.empty() ? page : absl::StrCat(page, "&continue=", Escaped(continue_)), false};
}

void SliceWatch::OnStatus(int http_status) {
  http_status_ = http_status;
  body_.clear();
  lines_.Reset();
  broken_ = absl::OkStatus();
}

absl::Status SliceWatch::OnBytes(absl::string_view bytes) {
  if (!broken_.ok()) return broken_;
  if (!listing_ && http_status_ == kOk) {
    broken_ = lines_.Add(bytes, [this](absl::string_view line) { return TakeEvent(line); });
    return broken_;
  }
  if (http_status_ != kOk) bytes = bytes.substr(0, kRefusalBytesMax - body_.size());
  if (bytes.size() > kPageBytesMax - body_.size()) {
    broken_ = absl::ResourceExhaustedError(
        absl::StrCat("the API server's answer to a list is longer than ", kPageBytesMax, " bytes"));
    return broken_;
  }
  body_.append(bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status SliceWatch::OnEnd(const absl::Status& transport) {
  const bool watched = !listing_;
  const absl::Status taken = TakeAnswer(transport);
  OnStatus(0);
  // Where an answer made no sense, something may have been missed.
  const bool try_again = taken.ok() || absl::IsUnavailable(taken) || absl::IsCancelled(taken) ||
                         absl::IsDeadlineExceeded(taken) || absl::IsPermissionDenied(taken);
  if (!try_again) ListAnew();
  if (watched && !taken.ok() && !listing_ && ++failed_watches_ >= kFailedWatchesMax) ListAnew();
  return taken;
}

absl::Status SliceWatch::TakeAnswer(const absl::Status& transport) {
  if (!broken_.ok()) return broken_;
  if (http_status_ != 0 && http_status_ != kOk) return Refused(http_status_, MessageOf(body_));
  if (!transport.ok()) return transport;
  return listing_ ? TakePage() : absl::OkStatus();
}

absl::Status SliceWatch::Refused(int code, absl::string_view message) const {
  const std::string what = absl::StrCat("the API server answered ", code, " to a ",
                                        listing_ ? "list" : "watch", ": ", Readable(message));
  if (code == kGone) return absl::AbortedError(what);
  if (code == kUnauthorized || code == kForbidden) return absl::PermissionDeniedError(what);
  return absl::UnavailableError(what);
}

absl::Status SliceWatch::TakePage() {
  const json page = json::parse(body_, nullptr, /*allow_exceptions=*/false);
  const json* const items = FieldOf(page, "items");
  const std::string version = MetadataOf(page, "resourceVersion");
  if (page.is_discarded() || version.empty() ||
      (items != nullptr && !items->is_array() && !items->is_null())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the API server's answer to a list is no EndpointSliceList: ", Readable(body_)));
  }
  if (items != nullptr && items->is_array()) {
    for (const json& item : *items) {
      absl::StatusOr<EndpointSlice> slice = ParseEndpointSlice(item, options_.port_name);
      if (!slice.ok()) return Readable(slice.status());
      if (absl::Status put = listed_.Put(*std::move(slice)); !put.ok()) return put;
    }
  }
  continue_ = MetadataOf(page, "continue");
  if (!continue_.empty()) {
    if (++pages_ < kPagesMax) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("the API server's list has no end: more than ", kPagesMax, " pages"));
  }
  slices_ = std::exchange(listed_, SliceSet());
  pages_ = 0;
  version_ = version;
  known_ = true;
  listing_ = false;
  failed_watches_ = 0;
  return absl::OkStatus();
}

absl::Status SliceWatch::TakeEvent(absl::string_view line) {
  const json event = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  const std::string type = StringOf(event, "type");
  const json* const object = FieldOf(event, "object");
  if (type.empty() || object == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the API server sent what is no event: ", Readable(line)));
  }
  if (type == "ERROR") {
    const int code = static_cast<int>(IntOf(*object, "code").value_or(0));
    return Refused(code, StringOf(*object, "message"));
  }
  return TakeObject(type, *object);
}

absl::Status SliceWatch::TakeObject(absl::string_view type, const json& object) {
  if (type == "DELETED") {
    slices_.Erase(MetadataOf(object, "name"));
  } else if (type == "ADDED" || type == "MODIFIED") {
    absl::StatusOr<EndpointSlice> slice = ParseEndpointSlice(object, options_.port_name);
    if (!slice.ok()) return Readable(slice.status());
    if (absl::Status put = slices_.Put(*std::move(slice)); !put.ok()) return put;
  } else if (type != "BOOKMARK") {
    return absl::InvalidArgumentError(
        absl::StrCat("the API server sent an event of type '", Readable(type), "'"));
  }
  failed_watches_ = 0;
  if (std::string version = MetadataOf(object, "resourceVersion"); !version.empty()) {
    version_ = std::move(version);
  }
  return absl::OkStatus();
}

void SliceWatch::ListAnew() {
  listing_ = true;
  listed_ = SliceSet();
  pages_ = 0;
  continue_.clear();
  failed_watches_ = 0;
}

std::optional<MemberList> SliceWatch::TakeChange() {
  if (!known_) return std::nullopt;
  MemberList members = slices_.Members();
  if (told_ == members) return std::nullopt;
  told_ = members;
  return members;
}

}  // namespace cairn::router
