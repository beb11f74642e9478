// NameThisThread: the name that ps, top and a debugger show for the calling thread.
#pragma once

#include <string>

namespace cairn {

// Keeps the first 15 bytes, which is what the kernel stores.
void NameThisThread(const std::string& name);

}  // namespace cairn
