// The threads that share one process's large collectives and stores: as many as cores, or
// GRADLINK_NUM_THREADS, counting the caller. They start at the first use that needs them and sleep
// on a futex when idle.
#pragma once

#include <cstddef>
#include <functional>

namespace gradlink {

class ThreadPool {
 public:
  /// The process-wide pool. Never destroyed: its threads sleep at exit (a static destructor would
  /// race them).
  static ThreadPool& shared();

  /// Threads a call can use, the caller included.
  int width() const;

  /// Calls body(part) once for each part in 0..parts-1, on the caller and on idle pool threads, and
  /// returns when all are done. Each thread has a range of the parts and then helps with the
  /// others, so a starved thread delays nobody.
  /// body must not throw. Safe to call from several threads at once.
  void parallel(std::size_t parts, const std::function<void(std::size_t)>& body);

 private:
  explicit ThreadPool(int width);
  struct Job;
  struct Impl;
  Impl* impl_;
};

}  // namespace gradlink
