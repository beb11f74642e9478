// SessionTest: a DecodeSession over nodes, held against the whole sequence in one place.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/decode/decode_session.h"
#include "tests/client/cpp/decode/decode_fixture.h"

namespace cairn::testing {

class SessionTest : public DecodeTest {
 protected:
  static constexpr uint64_t kSequence = 5;

  // Rows of one step for all layers, so that the reference and a repetition see the same.
  struct Step {
    uint64_t position = 0;
    uint64_t rows = 0;
    std::vector<uint32_t> tokens;
    std::vector<std::string> queries, keys, values;  // By layer.
  };

  struct Answer {
    absl::Status status;
    std::vector<float> output;
    std::vector<float> log_sum_exp;
  };

  void MakeSession() {
    auto session = DecodeSession::Make(handle_, {&parameters_, 1}, parts());
    CAIRN_CHECK_OK(session.status());
    session_ = *std::move(session);
  }

  static DecodeNode NodeOf(const FakeHolder* holder) {
    return {holder->decode_client.get(), holder->cache_client.get()};
  }
  static PartWish Wish(uint32_t begin, uint32_t end, std::vector<DecodeNode> holders,
                       uint64_t reserve_tokens = 0) {
    return {.first_block = begin,
            .blocks = end - begin,
            .holders = std::move(holders),
            .reserve_tokens = reserve_tokens};
  }

  void Open(std::vector<PartWish> parts) {
    if (session_ == nullptr) MakeSession();
    const absl::Status status = session_->Open(kSequence, MakePrompt(), parts);
    ASSERT_TRUE(status.ok()) << status;
  }

  Step MakeStep(uint64_t position, uint64_t rows) {
    Step step;
    step.position = position;
    step.rows = rows;
    for (uint64_t i = 0; i < rows; ++i) step.tokens.push_back(static_cast<uint32_t>(position + i));
    for (uint32_t layer = 0; layer < sizes_.layers; ++layer) {
      step.queries.push_back(Rows(sizes_.query_bytes, rows));
      step.keys.push_back(Rows(sizes_.key_bytes, rows));
      step.values.push_back(Rows(sizes_.value_bytes, rows));
    }
    return step;
  }

  // Room for a step's answer, and its rows. `appends`: keys and values go along.
  SessionRows RowsOf(const Step& step, uint32_t layer, bool appends, Answer* answer,
                     uint64_t sequence = kSequence) const {
    answer->output.assign(step.rows * sizes_.OutputFloats(), NAN);
    answer->log_sum_exp.assign(step.rows * sizes_.query_heads, NAN);
    return {.sequence = sequence,
            .position = step.position,
            .rows = step.rows,
            .queries = step.queries[layer].data(),
            .keys = appends ? step.keys[layer].data() : nullptr,
            .values = appends ? step.values[layer].data() : nullptr,
            .tokens = step.tokens,
            .output = answer->output.data(),
            .log_sum_exp = answer->log_sum_exp.data()};
  }

  Answer Attend(const Step& step, uint32_t layer, bool appends = true,
                absl::Span<const OwnRows> own = {}, uint64_t sequence = kSequence) {
    Answer answer;
    const SessionRows rows = RowsOf(step, layer, appends, &answer, sequence);
    answer.status = session_->Attend(0, layer, {&rows, 1}, own);
    return answer;
  }

  // What one place that holds all says; it appends the step's rows.
  Answer Reference(FakeSequence* whole, const Step& step, uint32_t layer) const {
    v1::AttendItem item;
    item.set_position(step.position);
    item.set_rows(static_cast<uint32_t>(step.rows));
    item.set_queries(step.queries[layer]);
    item.set_keys(step.keys[layer]);
    item.set_values(step.values[layer]);
    v1::AttendResult result;
    CAIRN_CHECK_OK(whole->Run(parameters_, layer, item, &result));
    return {absl::OkStatus(), FloatsOf(result.output()), FloatsOf(result.log_sum_exp())};
  }

  void ExpectSame(const Answer& got, const Answer& want) {
    ASSERT_TRUE(got.status.ok()) << got.status;
    ExpectNear(got.output, want.output);
    ExpectNear(got.log_sum_exp, want.log_sum_exp);
  }

  // All layers of a step, against `whole`.
  void Run(const Step& step, FakeSequence* whole, uint64_t sequence = kSequence) {
    for (uint32_t layer = 0; layer < sizes_.layers; ++layer) {
      ExpectSame(Attend(step, layer, true, {}, sequence), Reference(whole, step, layer));
    }
  }

  std::unique_ptr<DecodeSession> session_;
};

}  // namespace cairn::testing
