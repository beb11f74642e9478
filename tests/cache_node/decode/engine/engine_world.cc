#include "tests/cache_node/decode/engine/engine_world.h"

#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {

void GatePool::Run(uint32_t count, void (*task)(void* context, uint32_t index), void* context) {
  std::function<void()> what;
  {
    absl::MutexLock lock(&mutex_);
    inside_ = true;
    mutex_.Await(absl::Condition(this, &GatePool::IsOpen));
    inside_ = false;
    what = std::exchange(what_, nullptr);
  }
  if (what != nullptr) what();
  for (uint32_t i = 0; i < count; ++i) task(context, i);
}

void GatePool::Close() {
  absl::MutexLock lock(&mutex_);
  open_ = false;
}

void GatePool::Open() {
  absl::MutexLock lock(&mutex_);
  open_ = true;
}

void GatePool::AwaitInside() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &GatePool::IsInside));
}

void GatePool::Inside(std::function<void()> what) {
  absl::MutexLock lock(&mutex_);
  what_ = std::move(what);
}

TestStep::TestStep(const AttendShape* shape_in, const Fingerprint& fingerprint_in) {
  tenant = std::string("t");
  fingerprint = fingerprint_in;
  shape = shape_in;
}

DecodeItem& TestStep::AddItem(uint64_t position, uint32_t rows) {
  std::vector<float> numbers(rows * shape->QueryRowBytes() / sizeof(float));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = 1e-8f * static_cast<float>(i % 17) - 7e-8f;
  }
  std::string& bytes = queries_.emplace_back(numbers.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  DecodeItem& item = items.emplace_back();
  item.position = position;
  item.rows = rows;
  item.queries = bytes;
  DecodeResult& result = results.emplace_back();
  result.output = &outputs_.emplace_back();
  result.log_sum_exp = &log_sum_exps_.emplace_back();
  return item;
}

TestStep& TestStep::Leased(const LeaseId& lease, uint64_t position, uint32_t rows,
                           uint32_t first_block, uint32_t blocks) {
  DecodeItem& item = AddItem(position, rows);
  item.target = DecodeItem::Target::kLeased;
  item.leased = {.lease = lease, .prompt = 0, .first_block = first_block, .blocks = blocks};
  return *this;
}

TestStep& TestStep::Asks(const SequenceId& sequence, uint64_t position, uint32_t rows) {
  DecodeItem& item = AddItem(position, rows);
  item.target = DecodeItem::Target::kSequence;
  item.sequence = sequence;
  return *this;
}

TestStep& TestStep::Appends(const SequenceWorld& world, const SequenceId& sequence,
                            uint64_t position, std::vector<uint32_t> tokens, bool asks) {
  const auto count = static_cast<uint32_t>(tokens.size());
  rows_.push_back(world.MakeRows({.layer = layer}, position, std::move(tokens)));
  DecodeItem& item = AddItem(position, count);
  item.target = DecodeItem::Target::kSequence;
  item.sequence = sequence;
  if (!asks) item.queries = {};
  item.keys = rows_.back().keys;
  item.values = rows_.back().values;
  item.tokens = rows_.back().tokens;
  return *this;
}

void TestStep::Ready() { CheckItems(this); }

void TestStep::OnDone() {
  done_on_ = std::this_thread::get_id();
  done_.Notify();
}

EngineWorld::EngineWorld(DecodeEngine::Options options)
    : shape(*MakeAttendShape(*world.map, Parameters())) {
  engine =
      std::make_unique<DecodeEngine>(options, DecodeEngine::Parts{.sequences = world.table.get(),
                                                                  .store = world.store.store.get(),
                                                                  .counters = &world.store.counters,
                                                                  .clock = &world.store.clock,
                                                                  .pool = &pool,
                                                                  .seals = nullptr,
                                                                  .round_items = {},
                                                                  .round_seconds = {}});
}

AttendParameters EngineWorld::Parameters(uint32_t query_heads) {
  AttendParameters parameters;
  parameters.query_heads = query_heads;
  parameters.row_dtype = 3;
  parameters.softmax_scale = 1e-6f;  // What the world stores are whole numbers of 24 bits.
  return parameters;
}

std::unique_ptr<TestStep> EngineWorld::Step(uint32_t layer) {
  auto step = std::make_unique<TestStep>(&shape, world.fingerprint);
  step->layer = layer;
  return step;
}

absl::Status EngineWorld::Submit(TestStep& step) {
  step.Ready();
  return engine->Submit(&step);
}

void EngineWorld::Do(TestStep& step) {
  const absl::Status status = Submit(step);
  ASSERT_TRUE(status.ok()) << status;
  step.AwaitDone();
}

absl::Status EngineWorld::RunJob(std::function<void(SequenceTable&)> job) {
  absl::Notification done;
  DecodeEngine::Job wrapped = [&](SequenceTable& table) {
    job(table);
    done.Notify();
  };
  const absl::Status status = engine->Run(wrapped);
  if (status.ok()) done.WaitForNotification();
  return status;
}

}  // namespace cairn::node
