#include "nccl/processes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/agreement.h"
#include "core/hosts/rank_names.h"

namespace gradlink::nccl {

Processes::Processes(std::vector<std::vector<int>> ranks) : ranks_(std::move(ranks)) {
  std::size_t all = 0;
  for (const std::vector<int>& own : ranks_) {
    all += own.size();
    most_ = std::max(most_, static_cast<int>(own.size()));
  }
  holders_.resize(all);
  for (std::size_t process = 0; process < ranks_.size(); ++process) {
    for (const int rank : ranks_[process]) {
      holders_[static_cast<std::size_t>(rank)] = static_cast<int>(process);
    }
  }
}

Processes Processes::inOrder(const std::vector<int>& counts) {
  std::vector<std::vector<int>> ranks;
  int next = 0;
  for (const int count : counts) {
    ranks.emplace_back(static_cast<std::size_t>(count));
    std::iota(ranks.back().begin(), ranks.back().end(), next);
    next += count;
  }
  return Processes(std::move(ranks));
}

std::string Processes::nameOf(int process) const {
  const std::string ranks = listOfRanks(ranksOf(process));
  return most_ == 1 ? ranks : "process " + std::to_string(process) + " (" + ranks + ")";
}

Error ProcessControl::ofRanks(const Error& ofProcesses) const {
  const auto known = [&](int process) { return process >= 0 && process < processes_.size(); };
  if (ofProcesses.rank >= processes_.size()) {
    // Errors from abort() speak of ranks already.
    Error error = ofProcesses;
    error.rank -= processes_.size() + 1;
    return error;
  }
  Error error(
      ofProcesses.code, rewriteRanks(ofProcesses.what(), [&](const std::vector<int>& mentioned) {
        std::string text;
        for (const int process : mentioned) {
          text +=
              (text.empty() ? "" : ", ") +
              (known(process) ? processes_.nameOf(process) : "process " + std::to_string(process));
        }
        return text;
      }));
  error.usable = ofProcesses.usable;
  if (known(ofProcesses.rank)) error.rank = processes_.first(ofProcesses.rank);
  if (known(ofProcesses.other)) error.other = processes_.first(ofProcesses.other);
  return error.withOp(ofProcesses.op);
}

template <class Body>
auto ProcessControl::named(const Body& body) const {
  try {
    return body();
  } catch (const Error& error) {
    throw ofRanks(error);
  }
}

void ProcessControl::run(const Call& call) {
  named([&] { inner().run(call); });
}

std::unique_ptr<Communicator> ProcessControl::split(int color, int key,
                                                    const CallOptions& options) {
  return named([&] { return inner().split(color, key, options); });
}

void ProcessControl::check(const char* op) {
  named([&] { inner().check(op); });
}

void ProcessControl::abort(const std::string& reason) {
  const int process = heldRanks()[0];
  Error error(ErrorCode::aborted,
              "the communicator was aborted by " + processes_.nameOf(process) + ": " + reason);
  inner().fail(
      fromWhole(error.withRank(processes_.first(process)).withOp("abort"), processes_.size()));
}

}  // namespace gradlink::nccl
