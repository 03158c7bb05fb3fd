#!/usr/bin/env bash
# Makes a machine that has only Node, git and apt ready to run gradlink from this checkout. Running it again does only
# what is stale: a few seconds when nothing is.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system-packages.sh

need_node
need_packages "build the addon" g++=g++ cmake=cmake make=make

if node scripts/modules-fresh.mjs; then
  node scripts/build.mjs >build.log 2>&1 || {
    cat build.log >&2
    exit 1
  }
  node scripts/prepare.mjs --if-stale
else
  # Its install and prepare scripts build the addon and dist/.
  echo "Installing npm packages and building; a few minutes on a small machine."
  npm ci --no-audit --no-fund --loglevel=error --foreground-scripts </dev/null >build.log 2>&1 || {
    cat build.log >&2
    echo "npm ci failed; see above." >&2
    exit 1
  }
fi
rm -f build.log
echo "gradlink is ready."
