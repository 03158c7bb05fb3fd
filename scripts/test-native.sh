#!/usr/bin/env bash
# Native unit tests (GoogleTest through CTest), without Node.
#
#   test-native.sh [plain]    all cases
#   test-native.sh address    under AddressSanitizer and UndefinedBehaviorSanitizer
#   test-native.sh thread     under ThreadSanitizer, except ranks that are processes and PTX
#   --quick                   leaves out the cases whose name or suite starts with Slow (they move gigabytes, start many
#                             ranks, or fail on a machine that stalls for a second) and, under ThreadSanitizer, plain
#                             arithmetic and seven ranks on hosts
#   --slow                    only what --quick leaves out, but the fuzzers
#   --fuzz                    only these: a million inputs each of what a process reads from others
#   --addon                   builds the addon of each named kind too, in the same build
#   --build                   builds, and runs nothing; --build --addon --no-tests: the addon alone
#
# A compiler warning is an error under the sanitizers, and in CI in the plain build, which shares the objects of the addon.
# Build folders (build/cmake, build-address, build-thread) are kept, so that a second run compiles only what changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

which=all
tests=yes
run=yes
targets=()
runs=()
for argument in "$@"; do
  case "$argument" in
    plain | address | thread) runs+=("$argument") ;;
    --quick | --slow | --fuzz) which=${argument#--} ;;
    --addon) targets+=(addon) ;;
    --no-tests) tests=no ;;
    --build) run=no ;;
    *)
      echo "test-native.sh: unknown argument '$argument'; expected plain, address, thread, --quick, --slow, --fuzz, --addon," \
        "--no-tests or --build" >&2
      exit 2
      ;;
  esac
done
if [ ${#runs[@]} -eq 0 ]; then
  runs=(plain)
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

# What a case frees it keeps for its next arrays: a fresh array costs a fault a page, a tenth of all that the cases compute.
export GLIBC_TUNABLES="glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=4294967296:glibc.malloc.arena_max=1${GLIBC_TUNABLES:+:$GLIBC_TUNABLES}"

# The long suites of single-threaded arithmetic have nothing for ThreadSanitizer to find, and seven ranks on three hosts,
# which take it minutes, nothing that four on two do not.
not_threads='ReduceKernels|CopyMany|PatternTest|On0001122|HostsTogether.TakeManyPieces'

compile() {
  if [ "$1" = plain ]; then
    node scripts/native.mjs "${targets[@]}"
  else
    node scripts/native.mjs "${targets[@]}" --sanitize "$1" --strict
  fi
}

check() {
  local kind=$1 folder=build/cmake slow='[./]Slow' at_once=$(nproc)
  local -a select=() launcher=()
  if [ "$kind" != plain ]; then
    folder=build-$kind
  elif [ "$which" = quick ]; then
    # Ranks mostly wait for each other, and a case of ranks counts as two or more (native/test/ranks.cmake).
    at_once=$((3 * at_once))
  fi
  if [ "$kind" = thread ]; then slow+="|$not_threads"; fi
  case $which in
    quick) select+=(-E "$slow") ;;
    slow) select+=(-R "$slow" -E Fuzz) ;;
    fuzz) select+=(-R "[./]Slow[A-Za-z]*Fuzz") ;;
  esac
  if [ "$kind" = thread ]; then
    # Ranks that are processes share no memory that ThreadSanitizer could follow; the shm layer has them as threads. An
    # MPI's own synchronisation is not instrumented, so that what goes through it looks like races. The PTX's interpreter
    # runs a grid's threads one after the other, and takes ten times as long.
    select+=(-LE '^(process|messages|ptx)$')
    # ThreadSanitizer's fixed memory layout does not fit the widest address randomisation of newer kernels.
    if setarch -R true 2>/dev/null; then launcher=(setarch -R); fi
  fi
  if [ $run = yes ]; then echo "== native tests: $kind$([ ${#select[@]} -gt 0 ] && echo " (${select[*]})")"; fi
  compile "$kind" >"build-$kind.log" 2>&1 || {
    cat "build-$kind.log" >&2
    return 1
  }
  if [ $run = no ]; then return 0; fi
  "${launcher[@]}" ctest --test-dir "$folder" --parallel "$at_once" --output-on-failure --no-tests=error \
    --output-junit "$results/native-$kind.xml" "${select[@]}"
}

status=0
for kind in "${runs[@]}"; do
  check "$kind" || status=1
done
exit $status
