#!/usr/bin/env bash
# Makes a machine that has only Node, git and apt ready to run gradlink from this checkout. Running it again does only
# what is stale: a few seconds when nothing is.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system-packages.sh

need_node
need_packages "build the addon" g++=g++ cmake=cmake make=make

if ! node scripts/modules-fresh.mjs; then
  npm ci --no-audit --no-fund --loglevel=error </dev/null >build.log 2>&1 || {
    cat build.log >&2
    echo "npm ci failed; see above." >&2
    exit 1
  }
fi
node scripts/build.mjs >build.log 2>&1 || {
  cat build.log >&2
  exit 1
}
node scripts/bundle.mjs --if-stale
rm -f build.log
echo "gradlink is ready."
