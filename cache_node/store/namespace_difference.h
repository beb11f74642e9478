// DescribeDifference: in words, where two namespaces disagree.
#pragma once

#include <string>

#include "common/identity/namespace.h"

namespace cairn::node {

// The first field that differs, in the order in which the fingerprint covers them, with both
// values: "layout.groups[0].layers is 32 there and 40 here". REQUIRES: they differ.
std::string DescribeDifference(const Namespace& there, const Namespace& here);

}  // namespace cairn::node
