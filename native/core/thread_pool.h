// The threads for a process's large collectives and stores: one for each core or
// GRADLINK_NUM_THREADS, with the caller. They start on first use and sleep on a futex when idle.
#pragma once

#include <cstddef>
#include <functional>

namespace gradlink {

class ThreadPool {
 public:
  /// Never destroyed: its threads sleep at exit, where a static destructor would race them.
  static ThreadPool& shared();

  int width() const;

  /// Calls body(part) for each part in 0..parts-1, on the caller and on idle pool threads, which
  /// help each other, and returns when all are done. body must not throw. Thread-safe.
  void parallel(std::size_t parts, const std::function<void(std::size_t)>& body);

 private:
  explicit ThreadPool(int width);
  struct Job;
  struct Impl;
  Impl* impl_;
};

}  // namespace gradlink
