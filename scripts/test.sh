#!/usr/bin/env bash
# All tests (`npm test`): sets up what they need, builds, runs vitest and the native tests, and closes with a line
# counted from their results. The native tests run in full, then a quick subset under the sanitizers.
#
#   test.sh [--no-summary]    .ci/run prints its own summary, of tests and checks together
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/system-packages.sh

need_packages "run the native tests" /usr/include/gtest/gtest.h=libgtest-dev g++=g++ cmake=cmake make=make || exit 1
# Where these cannot be had, their tests are skipped with the reason.
need_packages "run the tests of jobs under MPI, under Slurm and on two hosts" \
  mpirun.openmpi=openmpi-bin mpicc.openmpi=libopenmpi-dev mpirun.mpich=mpich mpicc.mpich=libmpich-dev \
  /usr/sbin/slurmctld=slurmctld /usr/sbin/slurmd=slurmd srun=slurm-client /usr/sbin/munged=munge \
  ip=iproute2 nsenter=util-linux rsync=rsync || true
need_packages "open reports in a browser" /usr/bin/chromium=chromium || true
bash scripts/setup.sh || exit 1

rm -rf build/test-results
mkdir -p build/test-results
status=0
bash scripts/test-native.sh </dev/null || status=1
npx vitest run \
  --reporter=default --reporter=json --outputFile.json=build/test-results/vitest.json \
  --reporter=./scripts/vitest-skips.mjs </dev/null || status=1

if [ "${1:-}" != --no-summary ]; then
  node scripts/test-summary.mjs native-plain native-address native-thread vitest gpu-leaks || status=1
fi
exit $status
