#include "router/membership/dns_source.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "router/membership/dns_members.h"

namespace cairn::router {

DnsSource::DnsSource(Options options, std::unique_ptr<Resolver> resolver, LineLog log)
    : options_(std::move(options)), resolver_(std::move(resolver)), log_(std::move(log)) {
  CAIRN_CHECK(resolver_ != nullptr && options_.interval > absl::ZeroDuration());
}

std::string DnsSource::name() const {
  return absl::StrCat("dns ", options_.host, ":", options_.port);
}

void DnsSource::Run(const WakeEvent& stop, const Listener& listener) {
  DnsMembers known(options_.port);
  std::optional<MemberList> told;
  do {
    status_.NoteAsked();
    const absl::StatusOr<std::vector<std::string>> answer = resolver_->Resolve(options_.host);
    if (!answer.ok()) {
      NoteFailure(answer.status());
      continue;
    }
    status_.NoteOk();
    logged_.clear();
    known.Take(*answer);
    MemberList members = known.members();
    if (told == members) continue;
    listener(members);
    told = std::move(members);
  } while (!stop.WaitFor(options_.interval));
}

void DnsSource::NoteFailure(const absl::Status& why) {
  status_.NoteFailure(why);
  if (log_ == nullptr || logged_ == why.message()) return;
  logged_ = std::string(why.message());
  log_(absl::StrCat(name(), ": ", logged_, "; the nodes that are known stay"));
}

}  // namespace cairn::router
