#include "router/membership/kubernetes/kubernetes_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::router {

// Hands the answer on, and the list as soon as an event changed it.
class KubernetesSource::Reader final : public AnswerReader {
 public:
  Reader(KubernetesSource* source, const Listener& listener)
      : source_(source), listener_(listener) {}

  void OnStatus(int http_status, absl::Duration retry_after) override {
    retry_after_ = std::max(retry_after, absl::ZeroDuration());
    source_->watch_.OnStatus(http_status);
    if (http_status == 200) source_->NoteOk();
  }
  absl::Status OnBytes(absl::string_view bytes) override {
    const absl::Status taken = source_->watch_.OnBytes(bytes);
    source_->Tell(listener_);
    return taken;
  }

  absl::Duration retry_after() const { return retry_after_; }

 private:
  KubernetesSource* const source_;
  const Listener& listener_;
  absl::Duration retry_after_;
};

KubernetesSource::KubernetesSource(Options options, std::unique_ptr<ApiTransport> transport,
                                   Parts parts)
    : options_(std::move(options)),
      transport_(std::move(transport)),
      parts_(std::move(parts)),
      watch_(options_.watch) {
  CAIRN_CHECK(transport_ != nullptr && parts_.clock != nullptr && parts_.random != nullptr);
  CAIRN_CHECK(options_.backoff_initial > absl::ZeroDuration());
  CAIRN_CHECK(options_.backoff_max >= options_.backoff_initial);
}

std::string KubernetesSource::name() const {
  return absl::StrCat("kubernetes ", options_.watch.name_space, "/", options_.watch.service);
}

void KubernetesSource::Run(const WakeEvent& stop, const Listener& listener) {
  absl::Duration backoff = options_.backoff_initial;
  absl::Duration wait = absl::ZeroDuration();
  while (!stop.WaitFor(wait)) {
    const bool is_watch = watch_.Next().is_watch;
    const absl::Time began = parts_.clock->SteadyNow();
    absl::Duration retry_after;
    const absl::Status asked = Ask(stop, listener, &retry_after);
    if (stop.WaitFor(absl::ZeroDuration())) return;
    if (!asked.ok()) NoteFailure(asked);
    if (asked.ok() && !is_watch) {
      wait = absl::ZeroDuration();
      continue;
    }
    if (is_watch && parts_.clock->SteadyNow() - began > options_.backoff_max) {
      backoff = options_.backoff_initial;
    }
    wait = std::max(Jittered(backoff), std::min(retry_after, options_.retry_after_max));
    backoff = std::min(backoff * 2, options_.backoff_max);
  }
}

absl::Status KubernetesSource::Ask(const WakeEvent& stop, const Listener& listener,
                                   absl::Duration* retry_after) {
  const SliceWatch::Question question = watch_.Next();
  status_.NoteAsked();
  const absl::Duration timeout =
      question.is_watch ? options_.watch.watch_for + options_.watch_slack : options_.list_timeout;
  Reader reader(this, listener);
  const absl::Status transport = transport_->Get(question.path, timeout, stop, &reader);
  *retry_after = reader.retry_after();
  const absl::Status taken = watch_.OnEnd(transport);
  Tell(listener);
  return taken;
}

void KubernetesSource::Tell(const Listener& listener) {
  if (const std::optional<MemberList> members = watch_.TakeChange(); members.has_value()) {
    listener(*members);
  }
}

void KubernetesSource::NoteOk() {
  status_.NoteOk();
  if (std::exchange(logged_, "").empty() || parts_.log == nullptr) return;
  parts_.log(absl::StrCat(name(), ": the API server answers again"));
}

void KubernetesSource::NoteFailure(const absl::Status& why) {
  status_.NoteFailure(why);
  if (logged_ == why.message()) return;
  logged_ = std::string(why.message());
  if (parts_.log == nullptr) return;
  parts_.log(absl::StrCat(name(), ": ", logged_, "; the nodes that are known stay"));
}

// Between half of `wait` and all of it, so that routers do not return together.
absl::Duration KubernetesSource::Jittered(absl::Duration wait) const {
  uint8_t dice = 0;
  parts_.random->Fill(&dice, 1);
  return wait / 2 + wait / 2 * (dice / 255.0);
}

}  // namespace cairn::router
