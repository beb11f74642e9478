// MakeCudaDevice: a Device on the CUDA device of that number.
//
// Problem: this build has no CUDA, or there is no driver or no such device; the words say which.
// Without CUDA types, so that anything can include it; the CUDA runtime is linked statically.
#pragma once

#include <memory>

#include "kernels/device/device.h"

namespace cairn::kernels {

Problem MakeCudaDevice(int ordinal, std::unique_ptr<Device>* device);

}  // namespace cairn::kernels
