#include "kernels/gpu/attention_decode_launch.h"

CAIRN_SIMT_BEGIN

Problem LaunchFloat16Attention(const AttentionLaunch& launch, const simt::LaunchTarget& target) {
  return LaunchDecode<KvDtype::kFloat16>(launch, target);
}

CAIRN_SIMT_END
