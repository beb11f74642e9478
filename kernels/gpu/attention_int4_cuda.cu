#include "kernels/gpu/attention_decode_launch.h"

CAIRN_SIMT_BEGIN

Problem LaunchInt4Attention(const AttentionLaunch& launch, const simt::LaunchTarget& target) {
  return LaunchDecode<KvDtype::kInt4>(launch, target);
}

CAIRN_SIMT_END
