#include "common/server/thread_name.h"

#include <pthread.h>

namespace cairn {

void NameThisThread(const std::string& name) {
  constexpr size_t kNameBytesMax = 15;
  pthread_setname_np(pthread_self(), name.substr(0, kNameBytesMax).c_str());
}

}  // namespace cairn
