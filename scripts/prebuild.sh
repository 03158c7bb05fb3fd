#!/usr/bin/env bash
# The tarballs of this machine, from a fresh checkout: what the workflows run. Leaves build/npm/*.tgz. Options are those of
# scripts/pack.mjs.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system-packages.sh

need_packages "build gradlink's parts for both MPIs" \
  mpicc.openmpi=libopenmpi-dev mpicc.mpich=libmpich-dev readelf=binutils
bash scripts/setup.sh
npm run pack -- "$@"
