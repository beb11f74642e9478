#include "kernels/device/cuda_device.h"

namespace cairn::kernels {

Problem MakeCudaDevice(int ordinal, std::unique_ptr<Device>* /*device*/) {
  return "cuda:" + std::to_string(ordinal) +
         ": this build has no CUDA; configure with -DCAIRN_CUDA=ON where nvcc is there";
}

}  // namespace cairn::kernels
