// Alive: lets timers know whether the object that set them is still there.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace cairn::sim {

class Alive {
 public:
  // Runs `run` unless this was destroyed before.
  std::function<void()> Guard(std::function<void()> run) const {
    return [there = std::weak_ptr<const char>(there_), run = std::move(run)] {
      if (!there.expired()) run();
    };
  }

 private:
  const std::shared_ptr<const char> there_ = std::make_shared<const char>('\0');
};

}  // namespace cairn::sim
