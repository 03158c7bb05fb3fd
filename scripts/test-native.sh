#!/usr/bin/env bash
# Native unit tests (GoogleTest through CTest), without Node.
#
#   test-native.sh                          all cases plain, then a quick subset under the sanitizers
#   test-native.sh address --all            all cases under AddressSanitizer and UndefinedBehaviorSanitizer
#   test-native.sh thread --all             all cases under ThreadSanitizer, except ranks that are processes
#   test-native.sh plain                    the plain run alone; without --all a named sanitizer runs its quick subset
#
# Quick leaves out the cases whose name or suite starts with Slow and, under ThreadSanitizer, plain arithmetic. A
# compiler warning is an error under the sanitizers, and in CI in the plain build, which shares the objects of the addon.
# Build folders (build/cmake, build-address, build-thread) are kept, so that a second run compiles only what changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all=no
runs=()
for argument in "$@"; do
  case "$argument" in
    plain | address | thread) runs+=("$argument") ;;
    --all) all=yes ;;
    *)
      echo "test-native.sh: unknown argument '$argument'; expected plain, address, thread or --all" >&2
      exit 2
      ;;
  esac
done
if [ ${#runs[@]} -eq 0 ]; then
  runs=(plain address thread)
fi

for tool in cmake c++; do
  if ! command -v "$tool" >/dev/null; then
    echo "test-native.sh: $tool is not installed; run: apt-get install -y cmake g++ make libgtest-dev" >&2
    exit 1
  fi
done

jobs=$(nproc)
# Where scripts/test-summary.mjs counts them.
results=$PWD/build/test-results
mkdir -p "$results"

# Halting on the first finding is what makes a finding fail its test.
# allocator_may_return_null: tests ask for more memory than there is.
export ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1:strict_string_checks=1:check_initialization_order=1:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:${UBSAN_OPTIONS:-}"
# die_after_fork=0: a test forks to prove that the child can start threads again. atexit_sleep_ms=0: tests of NCCL run in
# processes of their own, each of which would sleep a second at its end.
export TSAN_OPTIONS="suppressions=$PWD/native/test/thread-sanitizer.supp:halt_on_error=1:allocator_may_return_null=1:second_deadlock_stack=1:die_after_fork=0:atexit_sleep_ms=0:${TSAN_OPTIONS:-}"

# The long suites of single-threaded arithmetic have nothing for ThreadSanitizer to find.
single_threaded='ReduceKernels|CopyMany|PatternTest'

compile() {
  if [ "$1" = plain ]; then
    node scripts/build.mjs --tests
    return
  fi
  cmake -S native -B "$2" -DGRADLINK_ADDON=OFF -DGRADLINK_TESTS=ON -DGRADLINK_FAKES=ON \
    -DGRADLINK_SANITIZE="$1" -DGRADLINK_WERROR=ON &&
    cmake --build "$2" --parallel "$jobs" -- --quiet
}

run() {
  local kind=$1 folder=build/cmake
  local -a select=() launcher=()
  if [ "$kind" != plain ]; then
    folder=build-$kind
    if [ "$all" = no ]; then
      if [ "$kind" = thread ]; then select+=(-E "[./]Slow|$single_threaded"); else select+=(-E '[./]Slow'); fi
    fi
  fi
  if [ "$kind" = thread ]; then
    # Ranks that are processes share no memory that ThreadSanitizer could follow; the shm layer has them as threads. An
    # MPI's own synchronisation is not instrumented, so that what goes through it looks like races.
    select+=(-LE '^(process|mpi)$')
    # ThreadSanitizer's fixed memory layout does not fit the widest address randomisation of newer kernels.
    if setarch -R true 2>/dev/null; then launcher=(setarch -R); fi
  fi
  echo "== native tests: $kind$([ ${#select[@]} -gt 0 ] && echo " (${select[*]})")"
  compile "$kind" "$folder" >"build-$kind.log" 2>&1 || {
    cat "build-$kind.log" >&2
    return 1
  }
  "${launcher[@]}" ctest --test-dir "$folder" --parallel "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$results/native-$kind.xml" "${select[@]}"
}

status=0
for kind in "${runs[@]}"; do
  run "$kind" || status=1
done
exit $status
