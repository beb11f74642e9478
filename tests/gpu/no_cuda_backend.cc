#include "tests/gpu/backend.h"

namespace cairn::gpu_check {

Problem MakeCudaBackend(int /*ordinal*/, std::unique_ptr<Backend>* /*backend*/) {
  return "this build has no CUDA: there was no nvcc when it was configured";
}

}  // namespace cairn::gpu_check
