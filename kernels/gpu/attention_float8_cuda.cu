#include "kernels/gpu/attention_decode_launch.h"

CAIRN_SIMT_BEGIN

Problem LaunchFloat8Attention(const AttentionLaunch& launch, const simt::LaunchTarget& target) {
  return LaunchDecode<KvDtype::kFloat8E4m3fn>(launch, target);
}

CAIRN_SIMT_END
