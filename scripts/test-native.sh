#!/usr/bin/env bash
# Native unit tests (GoogleTest through CTest), without Node.
#
#   test-native.sh                  all cases plain, then a quick subset under the sanitizers
#   test-native.sh plain            the plain run alone; of the cases that move more than 2 GiB it has one of threads and
#                                   one under an MPI, with --all the others too
#   test-native.sh plain --quick    without any of these, and of MPI's jobs without the ones of many ranks
#   test-native.sh address --all    all cases under AddressSanitizer and UndefinedBehaviorSanitizer
#   test-native.sh thread --all     all cases under ThreadSanitizer, except ranks that are processes and PTX
#   --addon                         builds the addon of each named kind too, in the same build
#   --build                         builds, and runs nothing; --build --addon --no-tests: the addon alone
#
# Under a sanitizer, without --all, quick is the default: it leaves out the cases whose name or suite starts with Slow, and
# those named in not_quick below. A compiler warning is an error under the sanitizers, and in CI in the plain build, which
# shares the objects of the addon. Build folders (build/cmake, build-address, build-thread) are kept, so that a second run
# compiles only what changed. Cases share processes (native-cases.mjs); ctest runs each in one of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all=no
quick=no
tests=yes
run=yes
targets=()
runs=()
for argument in "$@"; do
  case "$argument" in
    plain | address | thread) runs+=("$argument") ;;
    --all) all=yes ;;
    --quick) quick=yes ;;
    --addon) targets+=(addon) ;;
    --no-tests) tests=no ;;
    --build) run=no ;;
    *)
      echo "test-native.sh: unknown argument '$argument'; expected plain, address, thread, --all, --quick, --addon," \
        "--no-tests or --build" >&2
      exit 2
      ;;
  esac
done
if [ ${#runs[@]} -eq 0 ]; then
  runs=(plain address thread)
fi
if [ $tests = yes ]; then
  targets+=(tests)
fi

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

# What takes a sanitizer minutes and has little for it to find. Long suites of single-threaded arithmetic, which the plain run
# has; seven ranks where four do the same, and hosts placed as others are; of the stores' kinds those that step as another
# does; Open MPI and MPICH where the same code runs over TCP.
not_quick='ReduceKernels|CopyMany|PatternTest|HostsTogether.TakeManyPieces|[a-z]Windows?\.Moves?EveryType'
not_quick+='|On(0001122|0120|5552)|^(shm|process|nccl)\..*[A-Za-z]7( |$)|/mpich|GivesTheSameAsAPlainLoop/openmpi'
not_quick+='|GpuStore[A-Za-z]*\..*/(Shards)?(NoPeer|OneGpu|Automatic)|StepsToTheBitsOfTheHost/(Host|Nccl|ShardsPeer)'
not_quick+='|OptimizersStepToTheBits|LeavesTheHostsBits|StepsGiveTheBits|GpuPiecesTime'

compile() {
  if [ "$1" = plain ]; then
    node scripts/native.mjs "${targets[@]}"
  else
    node scripts/native.mjs "${targets[@]}" --sanitize "$1" --strict
  fi
}

check() {
  local kind=$1 folder=build/cmake
  local -a select=() launcher=()
  if [ "$kind" = plain ]; then
    if [ "$quick" = yes ]; then
      select+=(--exclude-label '^huge$' --exclude '^mpi\..*[./]Slow')
    elif [ "$all" = no ]; then
      # Touching the memory for the first time is what they take: seconds a GiB on some machines.
      select+=(--exclude 'SlowProcesses.ReduceMoreThanTwoGiB|MovesMoreThanTwoGiB/(tcp|mpich)')
    fi
  else
    folder=build-$kind
    if [ "$all" = no ]; then select+=(--exclude "[./]Slow|$not_quick"); fi
  fi
  if [ "$kind" = thread ]; then
    # Ranks that are processes share no memory that ThreadSanitizer could follow; the shm layer has them as threads. An
    # MPI's own synchronisation is not instrumented, so that what goes through it looks like races. The PTX's interpreter
    # runs a grid's threads one after the other, and takes ten times as long.
    select+=(--exclude-label '^(process|mpi|ptx)$')
    # ThreadSanitizer's fixed memory layout does not fit the widest address randomisation of newer kernels.
    if setarch -R true 2>/dev/null; then launcher=(setarch -R); fi
  elif [ "$kind" = address ] && [ "$all" = no ]; then
    # The interpreter is ours for tests alone.
    select+=(--exclude-label '^ptx$')
  fi
  if [ $run = yes ]; then echo "== native tests: $kind$([ ${#select[@]} -gt 0 ] && echo " (${select[*]})")"; fi
  compile "$kind" >"build-$kind.log" 2>&1 || {
    cat "build-$kind.log" >&2
    return 1
  }
  if [ $run = no ]; then return 0; fi
  "${launcher[@]}" node scripts/native-cases.mjs "$folder" --output "$results/native-$kind.xml" "${select[@]}"
}

status=0
for kind in "${runs[@]}"; do
  check "$kind" || status=1
done
exit $status
