// GroupAdaGrad keeps one number for each row: the sum over updates of the mean square of the row's
// gradient. MXNet 1.9.1's contrib operator: h += mean over the row of g^2, then w -= lr g / sqrt(h
// + eps), with g = clip(rescale gradient).
//
// Rows and blocks may overlap in any way. So the first phase stores the sum of squares of each
// row's part in each block, and these are added in block order: the result does not depend on the
// threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "core/kernels/optimizer_step.h"
#include "kvstore/optimizer/simd/kernels.h"

namespace gradlink {

struct GroupRows {
  std::size_t rowLength = 1;

  /// The index of a row's part in a block; unique, as a block shares only one row with the
  /// previous.
  std::size_t partOf(std::size_t row, std::size_t block) const { return row + block; }
  std::size_t parts(std::size_t count) const {
    return count == 0 ? 0 : count / rowLength + count / kUpdateBlock + 1;
  }

  /// Calls `body(row, first, count)` for each row's part of elements [start, start + count).
  template <class Body>
  void forEach(std::size_t start, std::size_t count, Body body) const {
    const std::size_t end = start + count;
    for (std::size_t first = start; first < end;) {
      const std::size_t row = first / rowLength;
      const std::size_t last = std::min(end, (row + 1) * rowLength);
      body(row, first, last - first);
      first = last;
    }
  }
};

template <class T>
void prepareGradient(const T* grad, std::size_t count, const StepScalars<T>& c, T* to) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = std::min(std::max(c.rescale * grad[i], -c.clip), c.clip);
  }
}

/// Elements [start, start + count), at most a block; `grad` points to element `start`.
template <class T>
void addRowSquares(const GroupRows& rows, const T* grad, std::size_t start, std::size_t count,
                   const StepScalars<T>& c, double* squares) {
  std::array<T, kUpdateBlock> prepared;
  prepareGradient(grad, count, c, prepared.data());
  const std::size_t block = start / kUpdateBlock;
  rows.forEach(start, count, [&](std::size_t row, std::size_t first, std::size_t length) {
    const T* const from = prepared.data() + (first - start);
    if constexpr (sizeof(T) == sizeof(float)) {
      squares[rows.partOf(row, block)] = kvKernels().sumOfSquares32(from, length);
    } else {
      squares[rows.partOf(row, block)] = kvKernels().sumOfSquares64(from, length);
    }
  });
}

/// For whole rows with elements [start, end), in blocks from `start` on.
template <class T>
void addHistory(const GroupRows& rows, const double* squares, std::size_t start, std::size_t end,
                T* history) {
  double sum = 0;
  for (std::size_t at = start; at < end; at += kUpdateBlock) {
    const std::size_t count = std::min(kUpdateBlock, end - at);
    rows.forEach(at, count, [&](std::size_t row, std::size_t first, std::size_t length) {
      sum += squares[rows.partOf(row, at / kUpdateBlock)];
      if (first + length != (row + 1) * rows.rowLength) return;
      history[row] += static_cast<T>(sum / static_cast<double>(rows.rowLength));
      sum = 0;
    });
  }
}

/// As addRowSquares; `history` points to row 0's number.
template <class T>
void stepRows(const GroupRows& rows, T* weights, const T* grad, std::size_t start,
              std::size_t count, const T* history, const StepScalars<T>& c) {
  std::array<T, kUpdateBlock> prepared;
  prepareGradient(grad, count, c, prepared.data());
  rows.forEach(start, count, [&](std::size_t row, std::size_t first, std::size_t length) {
    const T root = std::sqrt(history[row] + c.epsilon);
    const T* const g = prepared.data() + (first - start);
    T* const w = weights + (first - start);
    for (std::size_t i = 0; i < length; ++i) {
      // Without an epsilon, a row that never had a gradient would be 0 / 0.
      if (g[i] != T(0)) w[i] -= c.lr * g[i] / root;
    }
  });
}

}  // namespace gradlink
