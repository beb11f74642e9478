// EventSignal: a descriptor that polls as readable between Raise and Clear.
//
// An eventfd, for the loop of an engine that waits for many things at once. Thread-safe. Neither
// call blocks.
#pragma once

namespace cairn {

class EventSignal {
 public:
  // Without a descriptor, when the process has no more: fd() is -1 then, and the rest does nothing.
  EventSignal();
  ~EventSignal();

  EventSignal(const EventSignal&) = delete;
  EventSignal& operator=(const EventSignal&) = delete;

  int fd() const { return fd_; }
  void Raise();
  void Clear();

 private:
  const int fd_;
};

}  // namespace cairn
