#!/usr/bin/env bash
# The tests, in layers; each layer holds the one before.
#
#   test.sh         what every change is tried with: native tests, the TypeScript tests, one case of each kind of job
#   test.sh ci      what a change must pass: all cases, the sanitizers, other processors and versions of Node, the linters
#   test.sh full    everything there is: all cases under the sanitizers, compiling from the packed sources, deep lint
#
# It sets up what the tests need. build/test-results keeps what each phase left; the last lines are counted from there.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/system-packages.sh

layer=${1:-quick}
case "$layer" in
  quick | ci | full) ;;
  *)
    echo "test.sh: unknown layer '$layer'; expected quick, ci or full" >&2
    exit 2
    ;;
esac

results=build/test-results
rm -rf "$results"
mkdir -p "$results"
status=0
# What the closing summary reads, in the order of the phases.
counted=()

# phase NAME COMMAND...: runs it, and notes the seconds it took and its exit status.
phase() {
  local name=$1 began=$SECONDS outcome=0
  shift
  echo "== $name"
  "$@" </dev/null || outcome=$?
  [ "$outcome" = 0 ] || status=1
  echo "$((SECONDS - began)) $outcome $name" >>"$results/phases.txt"
}

set_up() {
  need_packages "run the native tests" /usr/include/gtest/gtest.h=libgtest-dev g++=g++ cmake=cmake make=make || return 1
  # Where these cannot be had, their tests are skipped with the reason.
  need_packages "run the tests of jobs under MPI, under Slurm and on two hosts" \
    mpirun.openmpi=openmpi-bin mpicc.openmpi=libopenmpi-dev mpirun.mpich=mpich mpicc.mpich=libmpich-dev \
    /usr/sbin/slurmctld=slurmctld /usr/sbin/slurmd=slurmd srun=slurm-client /usr/sbin/munged=munge \
    ip=iproute2 nsenter=util-linux rsync=rsync || true
  if [ "$layer" != quick ]; then
    need_packages "open reports in a browser" /usr/bin/chromium=chromium || true
  fi
  bash scripts/setup.sh
}

# native KIND [OPTION...]: the native tests, plain or under a sanitizer.
native() {
  counted+=("native-$1")
  phase "native tests: $1" bash scripts/test-native.sh "$@"
}

# What the sanitizers instrument takes minutes to compile. Jobs of processes wait for each other much of the time, so it is
# compiled behind them, with the lowest priority, in a group of its own that ends with this script. Where the kernel groups
# sessions (autogroup), a new session counts as much as all of this one, whatever its processes' nice values: it has its own.
compiling=
compile_sanitized() {
  setsid nice -n 19 bash -c '
    echo 19 2>/dev/null >/proc/self/autogroup
    exec bash scripts/test-native.sh address thread --build --addon' >"$results/sanitized.log" 2>&1 </dev/null &
  compiling=$!
  trap 'kill -- "-$compiling" 2>/dev/null' EXIT
}
await_sanitized() {
  if ! wait "$compiling"; then
    cat "$results/sanitized.log"
    echo "Compiling behind the tests failed; the native tests compile again what is missing."
  fi
  trap - EXIT
}

# ThreadSanitizer's fixed memory layout does not fit the widest address randomisation of newer kernels.
fixed_addresses=()
if setarch -R true 2>/dev/null; then fixed_addresses=(setarch -R); fi
launcher=()

# typescript RUN TITLE ARGUMENT...: vitest with these arguments; its results are build/test-results/vitest-RUN.json.
typescript() {
  local run=$1 title=$2
  shift 2
  counted+=("vitest-$run")
  phase "$title" "${launcher[@]}" npx vitest run "$@" \
    --reporter=default --reporter=json "--outputFile.json=$results/vitest-$run.json" --reporter=./scripts/vitest-skips.mjs
}

# Where it cannot be had, its tests are skipped with the reason.
tfjs_node() {
  local outcome=0
  bash scripts/tfjs-node.sh || outcome=$?
  [ "$outcome" = 0 ] || [ "$outcome" = 3 ]
}

phase "setting up" set_up
[ "$status" = 0 ] || exit 1

if [ "$layer" = quick ]; then
  native plain --quick
  typescript main "TypeScript" --project unit --project gpu --tags-filter '!slow'
  # vitest would load each file to find that it has no case of this tag.
  mapfile -t smoke < <(grep -lrE "'smoke'|@module-tag smoke" test --include='*.test.ts')
  typescript jobs "one case of each kind of job" --project jobs --project serial --tags-filter smoke "${smoke[@]}"
else
  if [ "$layer" = full ]; then native plain --all; else native plain; fi
  compile_sanitized
  typescript main "TypeScript" --project unit --project gpu
  typescript attack "attacks, a short run" --project attack
  phase "tfjs-node, its binding compiled against TensorFlow" tfjs_node
  on_tensorflow=(--project tfjs-node --project tfjs-node-gpu)
  if [ "$layer" = ci ]; then on_tensorflow+=(--tags-filter '!full && !once'); fi
  typescript tfjs-node "training on tfjs-node and tfjs-node-gpu" "${on_tensorflow[@]}"
  if [ "$layer" = ci ]; then
    typescript jobs "jobs of processes" --project jobs --project serial --tags-filter '!full'
    phase "compiling for the sanitizers, what was left of it" await_sanitized
    native address --addon
    native thread --addon
  else
    typescript jobs "jobs of processes" --project jobs --project serial
    phase "compiling for the sanitizers, what was left of it" await_sanitized
    native address --addon --all
    native thread --addon --all
  fi
  GRADLINK_SANITIZER=address typescript address "the addon under AddressSanitizer"
  launcher=("${fixed_addresses[@]}")
  # Arithmetic, which the same engine's other collectives take the same way.
  arithmetic=()
  if [ "$layer" = ci ]; then arithmetic=(--exclude 'test/communicator/{scan,integers}.test.ts'); fi
  GRADLINK_SANITIZER=thread typescript thread "the addon under ThreadSanitizer" "${arithmetic[@]}"
  launcher=()
  counted+=(native-arm64)
  if [ "$layer" = ci ]; then
    phase "kernels on arm64" bash scripts/test-arm64.sh
  else
    phase "kernels and addon on arm64" bash scripts/test-arm64.sh --addon
  fi
  # Of a version between two that run everything: what loads the addon and starts processes.
  node22=()
  if [ "$layer" = ci ]; then node22=(test/native/ test/kvstore/ test/misuse/ test/launch/ test/tensor/ test/train/); fi
  counted+=(vitest-node22 vitest-node24)
  phase "TypeScript on Node 22" bash scripts/test-node.sh 22 "${node22[@]}"
  phase "TypeScript on Node 24" bash scripts/test-node.sh 24
fi
counted+=(gpu-leaks)

if [ "$layer" != quick ]; then
  counted+=(checks)
  if [ "$layer" = full ]; then phase "lint" bash scripts/lint.sh --deep; else phase "lint" bash scripts/lint.sh; fi
fi

node scripts/test-summary.mjs "${counted[@]}" || status=1
exit $status
