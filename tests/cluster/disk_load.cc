#include "tests/cluster/disk_load.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cpp/client_parts.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {
namespace {

using PromptName = DiskHistory::PromptName;

// Between two questions to the node.
constexpr absl::Duration kAskInterval = absl::Milliseconds(2);

ClientOptions OptionsFor(const std::string& address) {
  ClientOptions options;
  options.target = address;
  options.control_timeout = absl::Seconds(20);
  options.retry.attempts_max = 1;  // The node does not come back at this address.
  return options;
}

}  // namespace

// One thread's client.
class DiskLoad::Caller {
 public:
  Caller(DiskLoad* load, uint64_t seed)
      : load_(load),
        options_(load->options_),
        random_(seed),
        client_(OptionsFor(options_.address), parts_.parts()) {}

  // The namespace may be gone, by another's retirement.
  absl::Status Call() {
    if (name_space_ == nullptr) {
      const Namespace fields = NamespaceOf(SmallBlocks());
      auto registered = client_.RegisterNamespace("disk-load", fields);
      if (!registered.ok()) return registered.status();
      name_space_ = std::make_unique<NamespaceHandle>(*std::move(registered));
    }
    absl::Status status = Make();
    if (absl::IsFailedPrecondition(status)) name_space_ = nullptr;
    return status;
  }

 private:
  absl::Status Make() {
    uint64_t choice =
        Below(options_.put + options_.read + options_.prefetch + options_.clear + options_.retire);
    if (choice < options_.put) return Put();
    choice -= options_.put;
    if (choice < options_.read) return Read();
    choice -= options_.read;
    if (choice < options_.prefetch) return Prefetch();
    return choice - options_.prefetch < options_.clear ? Clear() : Retire();
  }

  absl::Status Put() {
    const PromptName name = load_->history_->NewPrompt(AnySalt());
    const absl::StatusOr<PutResult> put = PutPrompt(client_, *name_space_, PromptOf(name).prompt());
    if (!put.ok()) return put.status();
    load_->history_->WasPut(name);
    return AwaitSpills();
  }

  absl::Status AwaitSpills() {
    while (!load_->over_.load()) {
      const absl::StatusOr<v1::DescribeResponse> node = client_.Describe(/*shards=*/false);
      if (!node.ok()) return node.status();
      const v1::DiskReport& disk = node->node().disk();
      if (disk.spill_queue_bytes() <= options_.spill_queue_bytes_max) break;
      load_->kill_is_due_.WaitForNotificationWithTimeout(kAskInterval);
    }
    return absl::OkStatus();
  }

  absl::Status Read() {
    const PromptName name = AnyPrompt();
    const bool gone = load_->history_->IsGone(name);
    LookupOptions options;
    options.wait = absl::Seconds(2);
    const absl::StatusOr<LeasedRead> read =
        LeaseAndCompare(client_, *name_space_, PromptOf(name), options);
    if (!read.ok()) return read.status();
    if (read->wrong > 0) load_->Breach(absl::StrCat(read->wrong, " wrong in ", Text(name)));
    if (gone && read->present > 0) load_->Breach(absl::StrCat(Text(name), " is there again"));
    load_->blocks_read_ += read->usable;
    return absl::OkStatus();
  }

  absl::Status Prefetch() {
    const PromptName name = AnyPrompt();
    LookupOptions options;
    options.promote = true;
    return client_.Lookup(*name_space_, PromptOf(name).span(), options).status();
  }

  absl::Status Clear() {
    const std::string salt = AnySalt();
    const std::vector<PromptName> put = load_->history_->PutSoFar(salt);
    const auto cleared = client_.ClearScope(name_space_->fingerprint(), ScopeOf(salt));
    if (cleared.ok()) load_->history_->AreGone(put);
    return cleared.status();
  }

  absl::Status Retire() {
    const std::vector<PromptName> put = load_->history_->PutSoFar();
    const auto retired = client_.RetireNamespace(name_space_->fingerprint());
    if (!retired.ok()) return retired.status();
    if (retired->done()) load_->history_->AreGone(put);
    name_space_ = nullptr;
    return absl::OkStatus();
  }

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  std::string AnySalt() { return options_.salts[Below(options_.salts.size())]; }
  // One that was put, if any was; the later half more often.
  PromptName AnyPrompt() {
    const std::vector<PromptName> put = load_->history_->PutSoFar();
    if (put.empty()) return load_->history_->NewPrompt(AnySalt());
    return put[Below(2) == 0 ? Below(put.size()) : put.size() - 1 - Below(put.size()) / 2];
  }
  NumberedPrompt PromptOf(const PromptName& name) const {
    return NumberedPrompt(client_, *name_space_, name.number, options_.prompt_blocks, name.salt);
  }
  static std::string Text(const PromptName& name) {
    return absl::StrCat("prompt ", name.number, " of ", name.salt);
  }

  DiskLoad* const load_;
  const Options& options_;
  std::mt19937_64 random_;
  SystemClientParts parts_;
  CacheNodeClient client_;
  std::unique_ptr<NamespaceHandle> name_space_;
};

DiskLoad::DiskLoad(const Options& options, DiskHistory* history)
    : options_(options), history_(history) {
  std::mt19937_64 seeds(options.seed);
  for (int i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this, seed = seeds()] { Run(seed); });
  }
}

DiskLoad::~DiskLoad() { End(); }

void DiskLoad::Run(uint64_t seed) {
  Caller caller(this, seed);
  while (!over_.load()) {
    caller.Call().IgnoreError();
    if (calls_.fetch_add(1) + 1 == options_.calls_until_kill) kill_is_due_.Notify();
  }
}

void DiskLoad::End() {
  over_.store(true);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void DiskLoad::Breach(const std::string& what) {
  absl::MutexLock lock(&mutex_);
  if (breach_.empty()) breach_ = what;
}

}  // namespace cairn::testing
