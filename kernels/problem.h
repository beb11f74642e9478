// Problem: what is wrong with the arguments of a kernel, in words; empty when nothing is.
//
// Kernels validate on the host before anything runs: with a problem nothing was read or written.
#pragma once

#include <string>

namespace cairn::kernels {

using Problem = std::string;

}  // namespace cairn::kernels
