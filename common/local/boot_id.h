// BootId: which boot of which machine this is. Two processes with the same one run under the same
// kernel, in whatever containers.
#pragma once

#include <string>

namespace cairn {

// Empty where the kernel does not say.
std::string BootId();

}  // namespace cairn
