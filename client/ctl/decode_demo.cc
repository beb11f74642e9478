#include "client/ctl/decode_demo.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/replay/model/model_shape.h"
#include "common/rpc/field_status.h"

namespace cairn::ctl {
namespace {

constexpr uint64_t kSequence = 1;
constexpr uint64_t kChunkTokens = 256;
constexpr uint32_t kProgressTokens = 16;
constexpr int kRoundTrips = 5;
// What fetching may take at home.
constexpr double kLocalBytes = 4e9;

std::string BytesText(uint64_t bytes) {
  if (bytes < 10 << 10) return absl::StrCat(bytes, " bytes");
  if (bytes < 10 << 20) return absl::StrCat(bytes >> 10, " KiB");
  return absl::StrCat(bytes >> 20, " MiB");
}

// Tokens that anyone can make again.
std::vector<uint32_t> PromptTokens(uint32_t count, uint64_t seed, uint32_t vocabulary) {
  std::vector<uint32_t> tokens;
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (uint32_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    tokens.push_back(static_cast<uint32_t>((state >> 33) % vocabulary));
  }
  return tokens;
}

}  // namespace

std::optional<size_t> DecodeDemoReport::FirstDifference() const {
  const auto [a, b] =
      std::mismatch(tokens.begin(), tokens.end(), tokens_alone.begin(), tokens_alone.end());
  if (a == tokens.end() && b == tokens_alone.end()) return std::nullopt;
  return static_cast<size_t>(a - tokens.begin());
}

DecodeDemo::DecodeDemo(const DecodeDemoOptions& options, const std::vector<ClientOptions>& nodes,
                       const ClientParts& parts, Say say)
    : options_(options), parts_(parts), say_(std::move(say)) {
  for (const ClientOptions& node : nodes) {
    nodes_.push_back({std::make_unique<CacheNodeClient>(node, parts),
                      std::make_unique<DecodeClient>(node, parts)});
  }
}

absl::Status DecodeDemo::Prepare() {
  const replay::ModelShape shape;
  absl::StatusOr<replay::Transformer> model = replay::Transformer::Make(shape, options_.seed);
  if (!model.ok()) return model.status();
  model_.emplace(*std::move(model));
  absl::StatusOr<NamespaceHandle> handle =
      replay::ModelNamespace(shape, options_.seed,
                             replay::ModelLayout(shape, Dtype::kFloat32, ScaleKind::kNone,
                                                 options_.block_tokens, /*slices=*/1));
  if (!handle.ok()) return handle.status();
  for (const Node& node : nodes_) {
    absl::StatusOr<NamespaceHandle> registered =
        node.cache->RegisterNamespace(handle->name(), handle->fields());
    if (!registered.ok()) return InField(node.decode->target(), registered.status());
    name_space_.emplace(*std::move(registered));
  }
  tokens_ = PromptTokens(options_.prompt_tokens, options_.seed, shape.vocabulary);
  const Region region{.scope = {options_.tenant, "", ""}, .tokens = tokens_, .external_ids = {}};
  absl::StatusOr<Prompt> prompt = nodes_[0].cache->MakePrompt(*name_space_, {&region, 1});
  if (!prompt.ok()) return prompt.status();
  prompt_.emplace(*std::move(prompt));
  return absl::OkStatus();
}

absl::Status DecodeDemo::PutPrefix(DecodeDemoReport* report) {
  const absl::Time begin = parts_.clock->SteadyNow();
  absl::StatusOr<std::unique_ptr<replay::ColdPrefill>> cold =
      replay::ColdPrefill::Run(&*model_, *name_space_, tokens_);
  if (!cold.ok()) return cold.status();
  cold_ = *std::move(cold);
  report->blocks = prompt_->block_count();
  report->block_bytes = name_space_->block_bytes();
  const absl::Time computed = parts_.clock->SteadyNow();
  say_(absl::StrFormat("worker 1 computed a prompt of %d tokens by itself: %.2f s",
                       options_.prompt_tokens, absl::ToDoubleSeconds(computed - begin)));
  uint64_t bytes = 0;
  for (const Node& node : nodes_) {
    const absl::StatusOr<PutResult> put = cold_->Put(node.cache.get(), *prompt_);
    if (!put.ok()) return InField(node.decode->target(), put.status());
    if (!put->complete()) {
      return InField(node.decode->target(),
                     absl::ResourceExhaustedError("takes no more blocks now"));
    }
    bytes += put->bytes_written;
    report->blocks_put += put->blocks_written;
    say_(absl::StrCat("worker 1 put its ", report->blocks, " blocks on ", node.decode->target(),
                      ": ", BytesText(put->bytes_written), " written, ",
                      put->blocks_already_present, " blocks were there"));
  }
  const double seconds = absl::ToDoubleSeconds(parts_.clock->SteadyNow() - computed);
  if (bytes > 0 && seconds > 0) link_bytes_per_second_ = static_cast<double>(bytes) / seconds;
  return absl::OkStatus();
}

std::vector<PartWish> DecodeDemo::Parts(PartForm form) const {
  const auto blocks = static_cast<uint32_t>(prompt_->block_count());
  const auto count = static_cast<uint32_t>(std::min<size_t>(nodes_.size(), std::max(blocks, 1u)));
  std::vector<PartWish> parts;
  for (uint32_t i = 0; i < count; ++i) {
    PartWish part;
    part.first_block = blocks * i / count;
    part.blocks = blocks * (i + 1) / count - part.first_block;
    part.form = form;
    // The others hold it too, should this one be lost.
    for (size_t j = 0; j < nodes_.size(); ++j) {
      const Node& node = nodes_[(i + j) % nodes_.size()];
      part.holders.push_back({node.decode.get(), node.cache.get()});
    }
    parts.push_back(std::move(part));
  }
  if (form == PartForm::kSequence) {
    parts.back().reserve_tokens = tokens_.size() + options_.new_tokens + 1;
  }
  return parts;
}

DecodeCostInputs DecodeDemo::CostInputs() const {
  DecodeCostInputs inputs;
  inputs.new_tokens = options_.new_tokens;
  inputs.round_trip_seconds = round_trip_seconds_;
  inputs.link_bytes_per_second = link_bytes_per_second_;
  inputs.local_bytes_free = kLocalBytes;
  return inputs;
}

absl::Status DecodeDemo::OpenPrefix(const Prompt& prompt, DecodeSession* session,
                                    replay::ServedAttention* attention, DecodeDemoReport* report) {
  std::vector<uint8_t> fetched(report->FetchBytes());
  const ContiguousBlocks place(&name_space_->payload_map(), absl::MakeSpan(fetched));
  OpeningWish wish;
  wish.choice = options_.way;
  wish.cost = CostInputs();
  absl::StatusOr<PrefixOpening> opening =
      cairn::OpenPrefix(session, kSequence, prompt, Parts(PartForm::kSequence), wish, place);
  report->form = "sequences";
  if (absl::IsFailedPrecondition(opening.status())) {
    report->form = "leases";
    report->why = std::string(opening.status().message());
    say_(absl::StrCat("no sequences: ", report->why));
    say_(
        "`cairn-node --decode-memory=256MiB ...` gives a node memory for them; going on over "
        "leases, with the new tokens' keys and values in worker 2");
    opening = cairn::OpenPrefix(session, kSequence, prompt, Parts(PartForm::kLease), wish, place);
  }
  if (!opening.ok()) return opening.status();
  report->cost = opening->cost;
  report->fetched_bytes = opening->fetched_bytes;
  if (opening->way != DecodeWay::kFetch) return absl::OkStatus();
  report->form = "fetched";
  for (uint64_t i = 0; i < report->blocks; ++i) {
    const auto* block =
        reinterpret_cast<const std::byte*>(fetched.data()) + i * report->block_bytes;
    const absl::Status status = attention->AppendPart(kSequence, {block, report->block_bytes});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status DecodeDemo::DecodeOver(DecodeDemoReport* report) {
  v1::AttentionParameters parameters;
  parameters.set_query_heads(model_->shape().query_heads);
  parameters.set_row_dtype(static_cast<uint32_t>(kernels::KvDtype::kFloat32));
  parameters.set_softmax_scale(model_->softmax_scale());
  const absl::StatusOr<std::unique_ptr<DecodeSession>> session =
      DecodeSession::Make(*name_space_, {&parameters, 1}, parts_);
  if (!session.ok()) return session.status();
  const uint64_t pages = (tokens_.size() + options_.new_tokens) / options_.block_tokens + 2;
  const absl::StatusOr<std::unique_ptr<replay::ServedAttention>> attention =
      replay::ServedAttention::Make(session->get(), pages);
  if (!attention.ok()) return attention.status();
  absl::Status status = OpenPrefix(*prompt_, session->get(), attention->get(), report);
  if (!status.ok()) return status;
  report->places = (*session)->Places(kSequence);
  for (const std::string& line : report->places) say_(absl::StrCat("worker 2: ", line));
  replay::ServedWorker worker(&*model_, {attention->get()});
  worker.Begin(kSequence, tokens_);
  const absl::Time begin = parts_.clock->SteadyNow();
  absl::StatusOr<std::vector<float>> logits = worker.Prefill(kSequence, kChunkTokens);
  if (absl::IsFailedPrecondition(logits.status())) {
    return absl::AbortedError(absl::StrCat(
        logits.status().message(), "\nStart it as `cairn-node --decode-memory=256MiB ...`"));
  }
  if (!logits.ok()) return logits.status();
  const absl::Time prefilled = parts_.clock->SteadyNow();
  uint32_t done = 0;
  const auto rate = [&](uint32_t tokens) {
    return tokens / std::max(absl::ToDoubleSeconds(parts_.clock->SteadyNow() - prefilled), 1e-9);
  };
  absl::StatusOr<std::vector<uint32_t>> tokens =
      worker.Decode(kSequence, *std::move(logits), options_.new_tokens, [&](uint32_t) {
        if (++done % kProgressTokens != 0 && done != options_.new_tokens) return;
        const SessionCounters counters = (*session)->counters();
        say_(absl::StrFormat("worker 2: %d of %d tokens, %.0f a second, %s moved", done,
                             options_.new_tokens, rate(done),
                             BytesText(counters.bytes_sent + counters.bytes_received)));
      });
  if (!tokens.ok()) return tokens.status();
  report->tokens_per_second = rate(options_.new_tokens);
  report->seconds = absl::ToDoubleSeconds(parts_.clock->SteadyNow() - begin);
  report->tokens = *std::move(tokens);
  report->session = (*session)->counters();
  report->recomputed_tokens = worker.counters().recomputed_tokens;
  worker.Close(kSequence);
  return absl::OkStatus();
}

absl::Status DecodeDemo::DecodeAlone(DecodeDemoReport* report) {
  const absl::Time begin = parts_.clock->SteadyNow();
  absl::StatusOr<replay::Decoded> decoded = cold_->Decode(options_.new_tokens);
  if (!decoded.ok()) return decoded.status();
  report->tokens_alone = std::move(decoded->tokens);
  const double seconds = absl::ToDoubleSeconds(parts_.clock->SteadyNow() - begin);
  report->alone_tokens_per_second = options_.new_tokens / std::max(seconds, 1e-9);
  return absl::OkStatus();
}

absl::StatusOr<DecodeDemoReport> DecodeDemo::Run() {
  DecodeDemoReport report;
  absl::Status status = Prepare();
  if (status.ok()) status = PutPrefix(&report);
  if (!status.ok()) return status;
  // A call that does nothing at the node: no sequence has this id.
  absl::Duration round_trip = absl::InfiniteDuration();
  for (int i = 0; i < kRoundTrips; ++i) {
    const absl::Time begin = parts_.clock->SteadyNow();
    const SequenceId none = parts_.random->New<SequenceId>();
    const absl::Status said = nodes_[0].decode->GetSequence(none).status();
    if (absl::IsUnimplemented(said)) {
      return absl::UnimplementedError(absl::StrCat(
          nodes_[0].decode->target(), " serves no attention: it is of an older version"));
    }
    round_trip = std::min(round_trip, parts_.clock->SteadyNow() - begin);
  }
  round_trip_seconds_ = absl::ToDoubleSeconds(round_trip);
  status = DecodeOver(&report);
  if (status.ok()) status = DecodeAlone(&report);
  if (!status.ok()) return status;
  return report;
}

}  // namespace cairn::ctl
