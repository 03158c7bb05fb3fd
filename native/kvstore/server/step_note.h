// Traces merging and updating.
#pragma once

#include <algorithm>

#include "kvstore/server/merge.h"
#include "kvstore/server/trace.h"

namespace gradlink::dist {

/// Records the merger's work: adding up, then stepping; a combined pass counts as stepping.
class StepNote {
 public:
  /// A null trace: no-op. `outside`: the update is the remaining time, not the merger's.
  StepNote(ServerTrace* trace, const Merger& merger, ServerTrace::Event about, bool outside)
      : trace_(trace), merger_(merger), about_(about), outside_(outside) {
    if (trace_ == nullptr) return;
    merged_ = merger.mergeSeconds();
    updated_ = merger.updateSeconds();
    begin_ = ServerTrace::now();
  }
  ~StepNote() {
    if (trace_ == nullptr) return;
    const double end = ServerTrace::now();
    const double merged = std::min(merger_.mergeSeconds() - merged_, end - begin_);
    const double rest = end - begin_ - merged;
    const double updated = outside_ ? rest : std::min(merger_.updateSeconds() - updated_, rest);
    add(ServerTrace::merge, begin_, begin_ + merged);
    add(ServerTrace::update, end - updated, end);
  }
  StepNote(const StepNote&) = delete;
  StepNote& operator=(const StepNote&) = delete;

 private:
  void add(ServerTrace::Name name, double begin, double end) {
    if (end <= begin) return;
    about_.name = name;
    about_.begin = begin;
    about_.end = end;
    trace_->add(about_);
  }

  ServerTrace* const trace_;
  const Merger& merger_;
  ServerTrace::Event about_;
  const bool outside_;
  double merged_ = 0;
  double updated_ = 0;
  double begin_ = 0;
};

}  // namespace gradlink::dist
