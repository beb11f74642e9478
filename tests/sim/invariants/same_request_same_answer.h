// 3.2: a request id belongs to its caller: asked again, the same server answers the same.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class SameRequestSameAnswer final : public Invariant {
 public:
  explicit SameRequestSameAnswer(const Scene* scene)
      : Invariant(scene, "same_request_same_answer") {}

  void OnNodeCall(const SeenCall& call) override { Check("node", call); }
  void OnRouterCall(const SeenCall& call) override { Check("router", call); }

 private:
  // Kind of server, its life, caller, method and request id.
  using Asked = std::tuple<std::string, Life, std::string, Method, std::string>;

  void Check(const std::string& kind, const SeenCall& call);

  std::map<Asked, std::string> answers_;
};

}  // namespace cairn::sim
