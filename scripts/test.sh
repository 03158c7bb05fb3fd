#!/usr/bin/env bash
# The tests.
#
#   test.sh                         what every change is tried with (`npm test`): native tests, TypeScript, a case of each kind of job
#   test.sh gate [PHASE...]         what a change must pass (.ci/run): these, the addon under AddressSanitizer, the linters. With
#                                   names these phases alone: native typescript jobs address lint
#   test.sh full [--only PART,...]  everything else, in parts that run alone (--list names them); each ends with a counted line
#   test.sh setup                   what all of these need, and nothing more
#
# It sets up what the tests need. build/test-results keeps what the phases of the last run, or part, left; its closing lines
# are counted from there.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/system-packages.sh

# ThreadSanitizer's fixed memory layout does not fit the widest address randomisation of newer kernels.
fixed_addresses=()
if setarch -R true 2>/dev/null; then fixed_addresses=(setarch -R); fi

results=build/test-results
running=$results/running
begin() {
  rm -rf "$results"
  mkdir -p "$running"
}

# phase RESULT TITLE COMMAND...: runs it, and notes when it began and ended, in seconds from the beginning, the exit status
# and which of the result files it leaves (several with commas, - for none) for the summary, which judges.
phase() {
  local result=$1 title=$2 began=$SECONDS outcome=0
  shift 2
  echo "== $title"
  "$@" </dev/null || outcome=$?
  echo "$began $SECONDS $outcome $result $title" >>"$results/phases.txt"
  return "$outcome"
}

# typescript RUN TITLE ARGUMENT...: vitest with these arguments; its results are build/test-results/vitest-RUN.json.
launcher=()
typescript() {
  local result=vitest-$1 title=$2
  shift 2
  local left=$result
  case " $* " in *' --project gpu '*) left+=,gpu-leaks ;; esac
  GRADLINK_RUNNING=$PWD/$running phase "$left" "$title" "${launcher[@]}" npx vitest run "$@" \
    --reporter=default --reporter=json "--outputFile.json=$results/$result.json" --reporter=./scripts/vitest-results.mjs
}

# native KIND TITLE [OPTION...]: the native tests, plain or under a sanitizer.
native() {
  local kind=$1 title=$2
  shift 2
  phase "native-$kind" "$title" bash scripts/test-native.sh "$kind" "$@"
}

set_up() {
  need_packages "run the native tests" /usr/include/gtest/gtest.h=libgtest-dev g++=g++ cmake=cmake make=make || return 1
  # Where these cannot be had, their tests are skipped with the reason.
  need_packages "run the tests of jobs under MPI, under Slurm and on two hosts" \
    mpirun.openmpi=openmpi-bin mpicc.openmpi=libopenmpi-dev mpirun.mpich=mpich mpicc.mpich=libmpich-dev \
    /usr/sbin/slurmctld=slurmctld /usr/sbin/slurmd=slurmd srun=slurm-client /usr/sbin/munged=munge \
    ip=iproute2 nft=nftables nsenter=util-linux rsync=rsync || true
  bash scripts/setup.sh
}

# --- what every change is tried with, and what it must pass ---------------------------------------------------

# A hung case of these ends after a minute, whatever its project grants otherwise.
case_limit=(--testTimeout=60000 --hookTimeout=60000)

gate_native() { native plain "native tests" --quick; }
gate_typescript() { typescript main "TypeScript" --project 'unit*' --project gpu --tags-filter '!full' "${case_limit[@]}"; }
gate_jobs() {
  local -a files
  # vitest would load each file to find that it has no case of this tag.
  mapfile -t files < <(grep -lrE "'smoke'|@module-tag smoke" test --include='*.test.ts')
  typescript jobs "one case of each kind of job" --project '!unit*' --project '!gpu' --project '!tfjs-*' --tags-filter smoke \
    "${case_limit[@]}" "${files[@]}"
}
gate_address() {
  phase - "compiling the addon for AddressSanitizer" bash scripts/test-native.sh address --build --addon --no-tests || return
  # The suites in which it found real faults.
  GRADLINK_SANITIZER=address typescript address "the addon under AddressSanitizer" "${case_limit[@]}" \
    test/native/sanitized test/process/{ending,kvstore,memory} test/communicator/{leases,lifetime} test/kvstore/{order,store,row-sparse}
}
gate_lint() { phase checks "lint" bash scripts/lint.sh; }

quick=(native typescript jobs)
gate=(native typescript jobs address lint)

# run_phases NAME...
run_phases() {
  local name
  begin
  if phase - "setting up" set_up; then
    for name in "$@"; do "gate_$name"; done
  fi
  node scripts/test-summary.mjs
}

# --- everything else ------------------------------------------------------------------------------------------

# Each takes at most twenty minutes on two cores.
parts=(native jobs gpus hosts guides peers packages browser attacks training sanitizers sanitizers-slow nodes arm64 analyzer)

part_native() { native plain "native cases that move gigabytes, start many ranks, or measure patience" --slow; }
part_jobs() {
  typescript main "cases that take long or measure patience" --project 'unit*' --project gpu --tags-filter full
  typescript jobs "jobs of processes" --project jobs --project serial --tags-filter '!smoke'
}
part_gpus() {
  local -x GRADLINK_FAKE_CAPABILITY=70 GRADLINK_FAKE_NVLINK=mesh
  typescript gpus-v100 "the GPU tests on four V100" --project gpu
  local -x GRADLINK_FAKE_CAPABILITY=90 GRADLINK_FAKE_NVLINK=switch GRADLINK_FAKE_GPUS=8
  typescript gpus-eight "the GPU tests on eight H100 behind switches" --project gpu
}
part_hosts() { typescript hosts "jobs on two hosts, and under Slurm" --project hosts; }
part_guides() { typescript guides "the guides, word for word" --project guides; }
part_peers() { typescript peers "the commands that measure others beside us" --project peers; }
part_packages() { typescript packages "what is packed, under every package manager" --project packages; }
part_browser() {
  need_packages "open reports in a browser" /usr/bin/chromium=chromium || true
  typescript browser "pages in Chromium" --project browser
}
part_attacks() {
  typescript attacks "attacks, a short run" --project attacks
  native address "a million inputs of what others send" --fuzz
}
part_training() {
  typescript training "training jobs" --project training
  # Where TensorFlow cannot be had, the tests on it are skipped with the reason.
  phase - "tfjs-node, its binding compiled against TensorFlow" tfjs_node
  typescript tfjs-node "training on tfjs-node and tfjs-node-gpu" --project tfjs-node --project tfjs-node-gpu
}
tfjs_node() {
  local outcome=0
  bash scripts/tfjs-node.sh || outcome=$?
  [ "$outcome" = 0 ] || [ "$outcome" = 3 ]
}
part_sanitizers() {
  phase - "compiling for the sanitizers" bash scripts/test-native.sh address thread --build --addon
  native address "native tests: address" --quick
  native thread "native tests: thread" --quick
  GRADLINK_SANITIZER=address typescript address "the addon under AddressSanitizer"
  launcher=("${fixed_addresses[@]}")
  GRADLINK_SANITIZER=thread typescript thread "the addon under ThreadSanitizer"
  launcher=()
}
part_sanitizers-slow() {
  phase - "compiling for the sanitizers" bash scripts/test-native.sh address thread --build
  native address "long native tests: address" --slow
  native thread "long native tests: thread" --slow
}
part_nodes() {
  local version
  for version in 22 24; do
    phase "vitest-node$version" "TypeScript on Node $version" bash scripts/test-node.sh "$version"
  done
}
part_arm64() { phase native-arm64 "kernels and addon on arm64" bash scripts/test-arm64.sh --addon; }
part_analyzer() { phase checks "lint with clang-tidy's static analyzer" bash scripts/lint.sh --deep; }

run_part() {
  begin
  if phase - "setting up" set_up; then "part_$1"; fi
  node scripts/test-summary.mjs --name "$1"
}

# run_parts PART...: prints, behind the last, a line for each.
run_parts() {
  local part began status=0
  local -a lines=()
  for part in "$@"; do
    echo "==== $part"
    began=$SECONDS
    run_part "$part" || status=1
    lines+=("$(printf '%6d s  %s' $((SECONDS - began)) "$(cat "$results/counted.txt" 2>/dev/null || echo "$part: no summary")")")
  done
  echo "Parts:"
  printf '%s\n' "${lines[@]}"
  return $status
}

refuse() {
  echo "test.sh: $1" >&2
  exit 2
}
# known KIND NAME CHOICE...
known() {
  local kind=$1 name=$2
  shift 2
  case " $* " in *" $name "*) ;; *) refuse "unknown $kind '$name'; expected one of: $*" ;; esac
}

layer=${1:-quick}
[ $# -eq 0 ] || shift
case "$layer" in
  quick)
    [ $# -eq 0 ] || refuse "unknown argument '$1'; expected none"
    run_phases "${quick[@]}"
    ;;
  setup) set_up ;;
  gate)
    for name in "$@"; do known phase "$name" "${gate[@]}"; done
    if [ $# -gt 0 ]; then run_phases "$@"; else run_phases "${gate[@]}"; fi
    ;;
  full)
    case "${1:-}" in
      '') chosen=("${parts[@]}") ;;
      --list)
        printf '%s\n' "${parts[@]}"
        exit 0
        ;;
      --only | --only=*)
        names=${1#--only}
        names=${names#=}
        IFS=', ' read -r -a chosen <<<"${names:-${2:-}}"
        [ ${#chosen[@]} -gt 0 ] || refuse "--only expects names with commas between them, of: ${parts[*]}"
        for name in "${chosen[@]}"; do known part "$name" "${parts[@]}"; done
        ;;
      *) refuse "unknown argument '$1'; expected --only PART,... or --list" ;;
    esac
    run_parts "${chosen[@]}"
    ;;
  *) refuse "unknown layer '$layer'; expected gate, full or setup, or nothing" ;;
esac
