// The flags that make a server know who calls, of every program that serves: --insecure,
// --insecure-anywhere, --tls-cert, --tls-key, --tls-ca, --tls-client-optional, --token-file and
// --access-file. Only programs link it.
#pragma once

#include "common/security/server_security.h"

namespace cairn {

// As they were given. After the command line was parsed.
ServerSecurityConfig ServerSecurityFromFlags();

}  // namespace cairn
