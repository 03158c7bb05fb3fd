#include "measure/collective_loop.h"

#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"
#include "measure/page_buffer.h"
#include "measure/pattern.h"
#include "measure/wrong_elements.h"

namespace gradlink::measure {
namespace {

using Clock = std::chrono::steady_clock;

/// One array, plain or the communicator's own.
class Array {
 public:
  Array(Communicator& comm, std::size_t bytes, bool shared) : comm_(comm) {
    if (shared && bytes != 0) {
      shared_ = comm.allocShared(bytes);
    } else {
      plain_ = allocatePages(bytes);
      if (plain_) std::memset(plain_.get(), 0, bytes);
    }
  }
  Array(Array&& other) noexcept
      : comm_(other.comm_),
        shared_(std::exchange(other.shared_, nullptr)),
        plain_(std::move(other.plain_)) {}
  Array& operator=(Array&&) = delete;
  ~Array() {
    if (shared_ != nullptr) comm_.freeShared(shared_);
  }
  std::uint8_t* data() const {
    return static_cast<std::uint8_t*>(shared_ != nullptr ? shared_ : plain_.get());
  }

 private:
  Communicator& comm_;
  void* shared_ = nullptr;
  PageBuffer plain_;
};

class CollectiveArrays {
 public:
  CollectiveArrays(Communicator& comm, const CollectiveOptions& options,
                   const CollectiveRecord& record)
      : comm_(comm),
        options_(options),
        record_(record),
        pattern_{options.dtype, options.op, comm.size(), options.seed} {
    // Copies use the pattern of max, whose values span the whole type.
    if (!record.reduces()) pattern_.op = ReduceOp::max;
    const std::size_t blockBytes = options.count * sizeOf(options.dtype);
    const std::size_t inBytes = record.inputBlocks(comm.size()) * blockBytes;
    const std::size_t outBytes = record.outputBlocks(comm.size()) * blockBytes;
    for (const int rank : comm.heldRanks()) {
      const std::size_t inside = static_cast<std::size_t>(rank) * blockBytes;
      if (!options.inPlace) {
        void* in = add(inBytes);
        pointers(in, add(outBytes));
      } else if (record.inPlace == InPlace::inInsideOut) {
        std::uint8_t* out = add(outBytes);
        pointers(out == nullptr ? nullptr : out + inside, out);
      } else if (record.inPlace == InPlace::outInsideIn) {
        std::uint8_t* in = add(inBytes);
        pointers(in, in == nullptr ? nullptr : in + inside);
      } else {
        std::uint8_t* both = add(inBytes);
        pointers(both, both);
      }
    }
    fill();
  }

  Buffers buffers() const { return {in_, out_}; }

  /// Writes all held ranks' inputs. Out of place, also overwrites the outputs: no old results.
  void fill() {
    const std::size_t n = comm_.heldRanks().size();
    for (std::size_t i = 0; i < n; ++i) {
      const int rank = comm_.heldRanks()[i];
      const std::size_t outBytes =
          record_.outputBlocks(comm_.size()) * options_.count * sizeOf(options_.dtype);
      if (!options_.inPlace && outBytes != 0) std::memset(out_[i], 0xff, outBytes);
      fillPattern(const_cast<void*>(in_[i]), 0, record_.inputBlocks(comm_.size()) * options_.count,
                  pattern_, rank);
    }
  }

  std::uint64_t countWrong() const {
    std::uint64_t wrong = 0;
    eachPart(comm_, options_, [&](std::size_t held, const Segment& part) {
      wrong += countIn(held, part, 0, part.count);
    });
    return wrong;
  }
  std::optional<WrongElement> firstWrong() const {
    return measure::firstWrong(comm_, options_, pattern_, *this);
  }
  std::uint64_t countIn(std::size_t held, const Segment& part, std::size_t from,
                        std::size_t count) const {
    const std::uint8_t* const got = at(held, part.begin + from);
    return part.origin.reducedRanks
               ? countWrongReduction(got, part.first + from, count, pattern_,
                                     *part.origin.reducedRanks)
               : countWrongInput(got, part.first + from, count, pattern_, part.origin.rank);
  }
  std::uint64_t bitsAt(std::size_t held, std::size_t index) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, at(held, index), sizeOf(options_.dtype));
    return bits;
  }

 private:
  const std::uint8_t* at(std::size_t held, std::size_t index) const {
    return static_cast<const std::uint8_t*>(out_[held]) + index * sizeOf(options_.dtype);
  }
  std::uint8_t* add(std::size_t bytes) {
    arrays_.emplace_back(comm_, bytes, options_.shared);
    return arrays_.back().data();
  }
  void pointers(void* in, void* out) {
    in_.push_back(in);
    out_.push_back(out);
  }

  Communicator& comm_;
  const CollectiveOptions& options_;
  const CollectiveRecord& record_;
  Pattern pattern_;
  std::vector<Array> arrays_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
};

[[noreturn]] void refuseCollective(const std::string& message) {
  throw Error(ErrorCode::invalidArgument, message).withOp("timeCollective").stillUsable();
}

void check(const Communicator& comm, const CollectiveOptions& options,
           const CollectiveRecord& record) {
  if (options.samples < 1)
    refuseCollective("samples must be at least 1, got " + std::to_string(options.samples));
  if (options.batch < 1)
    refuseCollective("batch must be at least 1, got " + std::to_string(options.batch));
  if (options.warmup < 0)
    refuseCollective("warmup must be at least 0, got " + std::to_string(options.warmup));
  if (options.root < 0 || options.root >= comm.size()) {
    refuseCollective("root must be a rank below " + std::to_string(comm.size()) + ", got " +
                     std::to_string(options.root));
  }
  if (options.inPlace && record.inPlace == InPlace::none) {
    refuseCollective(std::string(record.name) + " has no in-place form: run it out of place");
  }
}

/// Reduces a list over the processes of a job; every held rank contributes this process's list.
template <class T>
std::vector<T> combineLists(Communicator& comm, const std::vector<T>& mine, DType dtype,
                            ReduceOp op, const CallOptions& call) {
  const std::size_t held = comm.heldRanks().size();
  std::vector<T> result(mine.size());
  std::vector<std::vector<T>> others(held - 1, result);
  const std::vector<const void*> in(held, mine.data());
  std::vector<void*> out = {result.data()};
  for (std::vector<T>& other : others) out.push_back(other.data());
  comm.allReduce({in, out}, mine.size(), dtype, op, call);
  return result;
}

/// Wrong elements of all ranks. The first rank of a process contributes its ranks' common count.
std::uint64_t sumOverJob(Communicator& comm, std::uint64_t mine, const CallOptions& call) {
  const std::size_t held = comm.heldRanks().size();
  if (held == static_cast<std::size_t>(comm.size())) return mine;
  std::vector<std::uint64_t> values(held, 0);
  values[0] = mine;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (std::uint64_t& value : values) {
    in.push_back(&value);
    out.push_back(&value);
  }
  comm.allReduce({in, out}, 1, DType::uint64, ReduceOp::sum, call);
  return values[0];
}

}  // namespace

CollectiveResult timeCollective(Communicator& comm, const CollectiveOptions& options) {
  const CollectiveRecord& record = *options.collective;
  check(comm, options, record);
  const CallOptions call{options.timeoutMs};
  const Shape shape = record.shape(options.count, options.dtype, options.op, options.root);
  CollectiveResult result;

  CollectiveArrays arrays(comm, options, record);
  const Buffers buffers = arrays.buffers();
  const auto countWrong = [&] {
    const std::uint64_t mine = arrays.countWrong();
    if (mine > 0 && !result.firstWrong) result.firstWrong = arrays.firstWrong();
    return sumOverJob(comm, mine, call);
  };
  if (options.verify) {
    runRecord(record, comm, shape, buffers, call);
    result.wrongBefore = countWrong();
    arrays.fill();
  }
  for (int i = 0; i < options.warmup; ++i) runRecord(record, comm, shape, buffers, call);

  double total = 0;
  for (int sample = 0; sample < options.samples; ++sample) {
    // In place, repeated reductions take their own results as input. The last sample is a single
    // call on fresh data, so that a timed call is checked.
    const bool last = sample + 1 == options.samples;
    const int batch =
        last && options.verify && options.inPlace && record.reduces() ? 1 : options.batch;
    if (last && options.verify) arrays.fill();
    comm.barrier(call);
    const auto start = Clock::now();
    for (int i = 0; i < batch; ++i) runRecord(record, comm, shape, buffers, call);
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    total += elapsed.count();
    result.seconds.push_back(elapsed.count() / batch);
  }
  result.totalSeconds = total;
  if (options.verify) result.wrongAfter = countWrong();
  // Also a last barrier: no rank frees memory that a peer's call still reads.
  comm.barrier(call);
  if (options.combine != Combine::own &&
      comm.heldRanks().size() != static_cast<std::size_t>(comm.size())) {
    constexpr ReduceOp kOps[] = {ReduceOp::max, ReduceOp::avg, ReduceOp::min, ReduceOp::max};
    std::vector<double> mine = std::move(result.seconds);
    mine.push_back(result.totalSeconds);
    result.seconds =
        combineLists(comm, mine, DType::float64, kOps[static_cast<int>(options.combine)], call);
    result.totalSeconds = result.seconds.back();
    result.seconds.pop_back();
  }
  return result;
}

}  // namespace gradlink::measure
