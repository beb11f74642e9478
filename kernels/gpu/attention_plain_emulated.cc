#include "kernels/gpu/attention_choice.h"

CAIRN_SIMT_BEGIN

Problem LaunchAttention(const GpuAttention& attention, const simt::LaunchTarget& target) {
  constexpr AttentionDevice kDevice{227 << 10, true};  // As an H200's.
  return LaunchChosen(attention, kDevice, target);
}

CAIRN_SIMT_END
