#include "tests/bench/index/index_workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <list>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace cairn::bench {
namespace {

// Which prompts go together is seen in this many of their first blocks, as cut.
constexpr size_t kAffinityBlocks = 16;

// SplitMix64's.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

BlockKey KeyOfNumber(uint64_t number) {
  const uint64_t words[2] = {Mix(number * 2), Mix(number * 2 + 1)};
  BlockKey key;
  std::memcpy(key.bytes.data(), words, sizeof(words));
  return key;
}

class IndexWorkloadBuilder {
 public:
  IndexWorkloadBuilder(const IndexWorkloadOptions& options, uint32_t cut, IndexWorkload* workload)
      : options_(options), cut_(cut), workload_(workload), holders_(options.holders) {}

  void Add(const std::vector<BlockTrace::Block>& path) {
    if (path.empty()) return;
    numbers_.clear();
    for (const BlockTrace::Block block : path) {
      for (uint32_t part = 0; part < cut_; ++part) {
        numbers_.push_back(uint64_t{block} * cut_ + part);
      }
    }
    IndexWorkload::Request request;
    request.first_key = static_cast<uint32_t>(workload_->keys_.size());
    request.keys = static_cast<uint32_t>(numbers_.size());
    for (const uint64_t number : numbers_) workload_->keys_.push_back(KeyOfNumber(number));
    request.first_batch = static_cast<uint32_t>(workload_->batches_.size());
    Serve(HolderFor());
    request.batches = static_cast<uint32_t>(workload_->batches_.size()) - request.first_batch;
    workload_->requests_.push_back(request);
  }

 private:
  struct Holder {
    std::list<uint64_t> by_use;  // Last used first.
    absl::flat_hash_map<uint64_t, std::list<uint64_t>::iterator> blocks;
    uint64_t served = 0;
  };
  struct Record {
    BlockKey key;
    bool held = false;
  };

  // Two holders are good for a prefix: the one that has served less.
  size_t HolderFor() const {
    const uint64_t prefix = numbers_[std::min(numbers_.size(), kAffinityBlocks) - 1];
    const size_t one = Mix(prefix) % holders_.size();
    const size_t other = Mix(~prefix) % holders_.size();
    return holders_[other].served < holders_[one].served ? other : one;
  }

  void Serve(size_t index) {
    Holder& holder = holders_[index];
    holder.served += numbers_.size();
    std::vector<Record> records;
    // The last first, so that children go before their parents.
    for (auto number = numbers_.rbegin(); number != numbers_.rend(); ++number) {
      if (const auto found = holder.blocks.find(*number); found != holder.blocks.end()) {
        holder.by_use.splice(holder.by_use.begin(), holder.by_use, found->second);
        continue;
      }
      holder.by_use.push_front(*number);
      holder.blocks[*number] = holder.by_use.begin();
      records.push_back({KeyOfNumber(*number), true});
    }
    std::reverse(records.begin(), records.end());
    while (holder.blocks.size() > options_.blocks_per_holder) {
      records.push_back({KeyOfNumber(holder.by_use.back()), false});
      holder.blocks.erase(holder.by_use.back());
      holder.by_use.pop_back();
    }
    Send(static_cast<router::HolderIndex>(index), &records);
  }

  void Send(router::HolderIndex holder, std::vector<Record>* records) {
    const auto shard_of = [this](const Record& record) {
      return static_cast<uint16_t>(record.key.bytes[0] % options_.shards);
    };
    std::stable_sort(records->begin(), records->end(),
                     [&](const Record& a, const Record& b) { return shard_of(a) < shard_of(b); });
    for (size_t i = 0; i < records->size(); ++i) {
      const Record& record = (*records)[i];
      if (i == 0 || shard_of((*records)[i - 1]) != shard_of(record)) {
        workload_->batches_.push_back(
            {static_cast<uint32_t>(workload_->record_keys_.size()), 0, holder, shard_of(record)});
      }
      ++workload_->batches_.back().records;
      workload_->record_keys_.push_back(record.key);
      workload_->record_held_.push_back(record.held ? 1 : 0);
      workload_->stored_ += record.held ? 1 : 0;
    }
  }

  const IndexWorkloadOptions options_;
  const uint32_t cut_;
  IndexWorkload* const workload_;
  std::vector<Holder> holders_;
  std::vector<uint64_t> numbers_;
};

IndexWorkload IndexWorkload::Make(const BlockTrace& trace, const IndexWorkloadOptions& options) {
  const auto requests = static_cast<double>(std::max<size_t>(1, trace.requests().size()));
  const double mean = std::max(1.0, static_cast<double>(trace.block_refs()) / requests);
  const auto cut =
      static_cast<uint32_t>(std::max(1.0, std::round(options.blocks_per_prompt / mean)));
  IndexWorkload workload;
  IndexWorkloadBuilder builder(options, cut, &workload);
  std::vector<BlockTrace::Block> path;
  for (const BlockTrace::Request& request : trace.requests()) {
    trace.PathOf(request, &path);
    builder.Add(path);
  }
  return workload;
}

}  // namespace cairn::bench
