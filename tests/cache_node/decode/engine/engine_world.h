// EngineWorld: a DecodeEngine over a SequenceWorld, steps that remember their results, and a pool
// of threads that can be held inside a kernel.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "cache_node/decode/engine/decode_engine.h"
#include "cache_node/decode/engine/item_checks.h"
#include "tests/cache_node/decode/sequence/sequence_world.h"

namespace cairn::node {

// Runs tasks on the calling thread, when it is open.
class GatePool final : public kernels::WorkerPool {
 public:
  uint32_t workers() const override { return 1; }
  void Run(uint32_t count, void (*task)(void* context, uint32_t index), void* context) override;

  // Whoever computes from now on waits inside until Open.
  void Close();
  void Open();
  // Until somebody is inside.
  void AwaitInside();
  // Called inside, once, before the next tasks.
  void Inside(std::function<void()> what);

 private:
  bool IsOpen() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return open_; }
  bool IsInside() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return inside_; }

  absl::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  bool inside_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> what_ ABSL_GUARDED_BY(mutex_);
};

// Owns all that its items point to.
class TestStep final : public DecodeStep {
 public:
  explicit TestStep(const AttendShape* shape, const Fingerprint& fingerprint);

  // Queries for one item; zeros are numbers like others.
  DecodeItem& AddItem(uint64_t position, uint32_t rows);
  TestStep& Leased(const LeaseId& lease, uint64_t position, uint32_t rows = 1,
                   uint32_t first_block = 0, uint32_t blocks = 0);
  TestStep& Asks(const SequenceId& sequence, uint64_t position, uint32_t rows = 1);
  // Both layers' rows are made by the world; the queries see them.
  TestStep& Appends(const SequenceWorld& world, const SequenceId& sequence, uint64_t position,
                    std::vector<uint32_t> tokens, bool asks = true);

  // Checks the items, as a service does, and counts how often it is done.
  void Ready();
  void OnDone() override;
  void AwaitDone() const { done_.WaitForNotification(); }
  bool done() const { return done_.HasBeenNotified(); }
  std::thread::id done_on() const { return done_on_; }
  absl::StatusCode code(size_t item = 0) const { return results[item].status.code(); }
  const std::string& output(size_t item = 0) const { return outputs_[item]; }
  std::string& queries(size_t item = 0) { return queries_[item]; }

 private:
  std::deque<std::string> queries_;
  std::deque<SequenceWorld::Rows> rows_;
  std::deque<std::string> outputs_;
  std::deque<std::string> log_sum_exps_;
  absl::Notification done_;
  std::thread::id done_on_;
};

struct EngineWorld {
  // `inline_bytes`: what is done on the thread that brings it.
  explicit EngineWorld(DecodeEngine::Options options = {});

  // All slices, float32 rows, 4 or more query heads.
  static AttendParameters Parameters(uint32_t query_heads = 4);
  std::unique_ptr<TestStep> Step(uint32_t layer = 0);
  absl::Status Submit(TestStep& step);
  // Submits, and waits.
  void Do(TestStep& step);
  absl::Status RunJob(std::function<void(SequenceTable&)> job);

  SequenceWorld world;
  AttendShape shape;
  GatePool pool;
  std::unique_ptr<DecodeEngine> engine;
};

}  // namespace cairn::node
