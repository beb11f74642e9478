#include "tests/cache_node/store/random_store.h"

#include <algorithm>

#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

// Of each kind; an older one is dead.
constexpr size_t kClientsMax = 8;

const char* const kTenants[] = {"t", "u", "public"};

}  // namespace

RandomStore::RandomStore(uint64_t seed) : random_(seed), t_({.pool_bytes = 16 * 4096}) {
  shapes_ = {TestStore::Shape(1024, "small"), TestStore::Shape(4096, "large"),
             TestStore::ManySegments(3, 2, true)};
  shapes_[2].model = "parts";
  for (const Namespace& shape : shapes_) fingerprints_.push_back(t_.Register(shape));
}

void RandomStore::UseAny() { t_.Use(fingerprints_[Below(fingerprints_.size())]); }

TestPrompt RandomStore::AnyPrompt() {
  const std::string tenant = kTenants[Below(3)];
  const auto seed = static_cast<uint32_t>(1 + Below(4));
  const size_t blocks = 1 + Below(5);
  if (tenant != "public" && Below(3) == 0) {
    return t_.After(t_.Prompt("public", seed, 2), tenant, seed, blocks);
  }
  TestPrompt prompt = t_.Prompt(tenant, seed, blocks, Below(4) == 0 ? "salt" : "");
  if (Below(3) > 0) return prompt;
  return t_.Branch(prompt, 1 + Below(blocks), static_cast<uint32_t>(100 + Below(4)), 1 + Below(3));
}

bool RandomStore::MayBeVisible(const std::string& tenant, const TestPrompt& prompt,
                               const BlockKey& key) {
  if (tenant != prompt.tenant() && prompt.tenant() != "public") return false;
  return visible_.contains({t_.fingerprint(), prompt.tenant(), key});
}

void RandomStore::Step() {
  UseAny();
  const uint64_t dice = Below(100);
  if (dice < 16) {
    Reserve();
  } else if (dice < 46) {
    WriteSome();
  } else if (dice < 50) {
    EndWriter();
  } else if (dice < 60) {
    LookUp();
  } else if (dice < 68) {
    Lease();
  } else if (dice < 78) {
    ReadLeased();
  } else if (dice < 84) {
    EndLease();
  } else if (dice < 88) {
    PinOrDrop();
  } else if (dice < 90) {
    StayOrNot();
  } else if (dice < 94) {
    Remove();
  } else if (dice < 96) {
    Report();
  } else if (dice < 99 || Below(8) > 0) {
    t_.Advance(absl::Milliseconds(100 * Below(40)));
    t_.store->EndRetention(t_.clock.WallNow());
  } else {
    RetireOne();
  }
}

void RandomStore::Reserve() {
  Writer writer;
  writer.fingerprint = t_.fingerprint();
  writer.prompt = AnyPrompt();
  writer.from = Below(4) == 0 ? Below(writer.prompt.keys.size()) : 0;
  const auto answer = t_.Reserve(writer.prompt, writer.from);
  CAIRN_CHECK_OK(answer.status());
  bool refused = false;
  for (const ReserveOutcome outcome : answer->outcomes) {
    if (refused) CAIRN_CHECK(outcome == ReserveOutcome::kUndecided);
    refused =
        refused || (outcome != ReserveOutcome::kReserved && outcome != ReserveOutcome::kPresent &&
                    outcome != ReserveOutcome::kInProgress);
  }
  if (!answer->token.has_value()) return;
  if (writers_.size() >= kClientsMax) writers_.pop_front();
  writer.outcomes = answer->outcomes;
  writer.token = *answer->token;
  writers_.push_back(std::move(writer));
}

void RandomStore::Commit(Writer* writer, uint32_t index) {
  const BlockKey& key = writer->prompt.keys[writer->from + index];
  const auto answer = t_.CommitBlock(writer->prompt.tenant(), writer->token, key, index);
  if (!answer.ok()) {
    CAIRN_CHECK(answer.status().code() == absl::StatusCode::kAborted);
    return;
  }
  if (!answer->errors.empty()) return;
  ++committed_;
  visible_.insert({writer->fingerprint, writer->prompt.tenant(), key});
}

void RandomStore::WriteSome() {
  if (writers_.empty()) return;
  Writer& writer = writers_[Below(writers_.size())];
  t_.Use(writer.fingerprint);
  if (Below(6) == 0 && !writer.claims.empty()) {
    // A claim that was held across other calls: its bytes come late, whatever became of the block.
    auto [index, claim] = std::move(writer.claims.back());
    writer.claims.pop_back();
    std::fill(claim.destination().begin(), claim.destination().end(), 0xee);
    const absl::Status status = t_.store->FinishWrite(std::move(claim));
    CAIRN_CHECK(!status.ok());
    return;
  }
  while (writer.next < writer.outcomes.size() &&
         writer.outcomes[writer.next] != ReserveOutcome::kReserved) {
    ++writer.next;
  }
  if (writer.next == writer.outcomes.size()) return;
  const uint32_t index = writer.next;
  const BlockKey& key = writer.prompt.keys[writer.from + index];
  if (Below(8) == 0) {
    auto claim = t_.store->BeginWrite(writer.prompt.tenant(), writer.token, 9,
                                      t_.Piece(key, index, {0, 0, 0}, 1));
    if (claim.ok() && *claim) writer.claims.emplace_back(index, *std::move(claim));
    return;
  }
  const absl::Status status = t_.WriteBlock(writer.prompt.tenant(), writer.token, key, index);
  if (!status.ok()) {
    CAIRN_CHECK_MSG(status.code() == absl::StatusCode::kAborted, status.ToString());
    return;
  }
  Commit(&writer, index);
  ++writer.next;
}

void RandomStore::EndWriter() {
  if (writers_.empty()) return;
  Writer writer = std::move(writers_.front());
  writers_.pop_front();
  t_.Use(writer.fingerprint);
  if (Below(2) == 0) return;  // It dies: its token expires.
  const absl::Status status = t_.store->Abort(writer.prompt.tenant(), writer.token);
  CAIRN_CHECK(status.ok() || status.code() == absl::StatusCode::kAborted);
}

void RandomStore::LookUp() {
  const TestPrompt prompt = AnyPrompt();
  const std::string tenant = kTenants[Below(3)];
  const LookupAnswer answer = t_.Lookup(tenant, prompt, Below(2) == 0);
  CAIRN_CHECK(answer.namespace_known);
  for (size_t i = 0; i < prompt.keys.size(); ++i) {
    const bool seen = answer.prompts[0].blocks[i].state == BlockState::kHost;
    if (seen) CAIRN_CHECK(MayBeVisible(tenant, prompt, prompt.keys[i]));
    CAIRN_CHECK(i >= answer.prompts[0].present || seen);
  }
}

void RandomStore::Lease() {
  const TestPrompt prompt = AnyPrompt();
  const auto readers = static_cast<uint32_t>(1 + Below(3));
  const absl::Duration ttl = absl::Seconds(static_cast<int64_t>(1 + Below(10)));
  const LookupAnswer answer = t_.Lease(prompt, readers, ttl);
  CAIRN_CHECK(answer.prompts[0].leased <= answer.prompts[0].present);
  CAIRN_CHECK(answer.lease.has_value() == (answer.prompts[0].leased > 0));
  if (!answer.lease.has_value()) return;
  if (readers_.size() >= kClientsMax) readers_.pop_front();
  readers_.push_back({t_.fingerprint(), prompt, *answer.lease, answer.prompts[0].leased, readers,
                      t_.time.Now() + ttl});
}

void RandomStore::ReadLeased() {
  if (readers_.empty()) return;
  Reader& reader = readers_[Below(readers_.size())];
  t_.Use(reader.fingerprint);
  const BlockKey& key = reader.prompt.keys[Below(reader.leased)];
  const std::string& tenant = reader.prompt.tenant();
  BlockPin pin = t_.Pin(tenant, key, reader.lease);
  if (pin) {
    CAIRN_CHECK(visible_.contains({reader.fingerprint, tenant, key}));
    CAIRN_CHECK(pin.readable());
    CAIRN_CHECK(t_.Intact(pin, key));
    ++reads_checked_;
    if (Below(4) == 0) pins_.push_back({reader.fingerprint, key, std::move(pin)});
    return;
  }
  // Only if it ran out, or somebody removed a block of it.
  bool removed = false;
  for (uint32_t i = 0; i < reader.leased; ++i) {
    if (!visible_.contains({reader.fingerprint, tenant, reader.prompt.keys[i]})) removed = true;
  }
  const auto status = t_.store->GetLease(tenant, reader.lease);
  CAIRN_CHECK(removed || t_.time.Now() >= reader.certain_until || !status.ok() || status->complete);
}

void RandomStore::EndLease() {
  if (readers_.empty()) return;
  const Reader reader = readers_.front();
  readers_.pop_front();
  t_.Use(reader.fingerprint);
  for (uint32_t i = 0; i < reader.readers; ++i) {
    if (Below(5) == 0) continue;  // That reader died.
    const auto status =
        t_.store->EndLease(reader.prompt.tenant(), reader.lease, i, {reader.leased});
    CAIRN_CHECK(status.ok() || status.status().code() == absl::StatusCode::kAborted);
  }
}

void RandomStore::PinOrDrop() {
  if (!pins_.empty() && Below(2) == 0) {
    HeldPin& held = pins_.front();
    t_.Use(held.fingerprint);
    // Whatever became of the block: its bytes are unchanged.
    CAIRN_CHECK(t_.Intact(held.pin, held.key));
    ++reads_checked_;
    pins_.pop_front();
    return;
  }
  const TestPrompt prompt = AnyPrompt();
  const BlockKey& key = prompt.keys[Below(prompt.keys.size())];
  const std::string tenant = kTenants[Below(3)];
  BlockPin pin = t_.Pin(tenant, key);
  if (!pin) return;
  CAIRN_CHECK(MayBeVisible(tenant, prompt, key));
  CAIRN_CHECK(t_.Intact(pin, key));
  if (pins_.size() < 6) pins_.push_back({t_.fingerprint(), key, std::move(pin)});
}

void RandomStore::Forget(const Fingerprint& fingerprint, const BlockKey& key) {
  for (const char* tenant : kTenants) visible_.erase({fingerprint, tenant, key});
}

void RandomStore::Remove() {
  const TestPrompt prompt = AnyPrompt();
  if (Below(4) > 0) {
    const BlockKey& key = prompt.keys[Below(prompt.keys.size())];
    const auto removed = t_.store->Delete(prompt.tenant(), t_.fingerprint(), {key});
    CAIRN_CHECK_OK(removed.status());
    if ((*removed)[0]) CAIRN_CHECK(visible_.contains({t_.fingerprint(), prompt.tenant(), key}));
    Forget(t_.fingerprint(), key);
    return;
  }
  const auto cleared =
      t_.store->ClearScope(prompt.tenant(), t_.fingerprint(), ScopeDigest(prompt.scope));
  CAIRN_CHECK_OK(cleared.status());
  // The model forgets more than the scope: what it does not know it does not demand.
  std::erase_if(visible_, [&](const auto& block) {
    if (std::get<0>(block) != t_.fingerprint() || std::get<1>(block) != prompt.tenant()) {
      return false;
    }
    return !t_.Pin(prompt.tenant(), std::get<2>(block));
  });
}

void RandomStore::StayOrNot() {
  const TestPrompt prompt = AnyPrompt();
  const int64_t until = Below(3) == 0
                            ? 0
                            : absl::ToUnixMillis(t_.clock.WallNow() + absl::Seconds(1 + Below(20)));
  const std::vector<StayOutcome> outcomes =
      t_.store->Stay(prompt.tenant(), t_.fingerprint(), prompt.keys, until);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i] != StayOutcome::kStays) continue;
    ++stayed_;
    CAIRN_CHECK(i == 0 || outcomes[i - 1] == StayOutcome::kStays);
  }
}

void RandomStore::RetireOne() {
  CAIRN_CHECK(t_.Lookup("t", t_.Prompt("t", 1, 1)).namespace_known);
  const auto retired = t_.store->RetireNamespace(t_.fingerprint());
  CAIRN_CHECK_OK(retired.status());
  std::erase_if(visible_,
                [&](const auto& block) { return std::get<0>(block) == t_.fingerprint(); });
  for (const Namespace& shape : shapes_) t_.Register(shape);
}

void RandomStore::Report() {
  const TestPrompt prompt = AnyPrompt();
  const auto confirmed =
      t_.store->ReportMismatch(prompt.tenant(), t_.fingerprint(), prompt.keys[0], {0, 0, 0});
  CAIRN_CHECK_OK(confirmed.status());
  CAIRN_CHECK(!*confirmed);
}

void RandomStore::DropClients() {
  writers_.clear();
  readers_.clear();
  pins_.clear();
  t_.AdvancePastEverything();
  t_.store->EndRetention(t_.clock.WallNow());
}

}  // namespace cairn::node
