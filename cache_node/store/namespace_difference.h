// DescribeDifference: in words, where two namespaces disagree.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/identity/namespace.h"

namespace cairn::node {

struct NamespaceRecord;

// The first field that differs, in the order in which the fingerprint covers them, with both
// values: "layout.groups[0].layers is 32 there and 40 here". REQUIRES: they differ.
std::string DescribeDifference(const Namespace& there, const Namespace& here);

// Of labelled namespaces those that differ from `fields`, with DescribeDifference: those that have
// most fields in common first, then by label; at most `max`.
std::vector<std::pair<std::string, std::string>> NearestNamespaces(
    const std::vector<std::pair<std::string, const NamespaceRecord*>>& known,
    const Namespace& fields, size_t max);

}  // namespace cairn::node
