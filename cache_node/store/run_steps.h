// RunSteps: how BlockStore's own files run an operation in steps. Not for users of the store.
#pragma once

#include "cache_node/store/block_store.h"

namespace cairn::node {

template <typename Step>
void BlockStore::RunSteps(const Step& step) {
  bool done = false;
  while (!done) {
    const absl::Time now = time_->Now();
    Section section(this);
    done = step(&*state_, now);
  }
}

}  // namespace cairn::node
