#!/usr/bin/env bash
# Makes a machine that has only Node, git and apt ready to run gradlink from this checkout. Says what took how long, a
# line a phase. Running it again does only what is stale: a second when nothing is.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system-packages.sh

begun=$EPOCHREALTIME
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# seconds SINCE: the time that has passed, with one decimal.
seconds() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%5.1f", b - a }'; }

# phase NAME COMMAND...: runs it; silent but for its line, unless it fails.
phase() {
  local name=$1 start=$EPOCHREALTIME
  shift
  if ! "$@" >"$logs/$name" 2>&1 </dev/null; then
    cat "$logs/$name" >&2
    echo "setup.sh: $name failed; see above." >&2
    return 1
  fi
  printf '  %-12s %s s\n' "$name" "$(seconds "$start")"
}

# Not through phase: what is missing, and what is being installed, should be seen at once.
need_node
start=$EPOCHREALTIME
# Ninja, because make would compile nothing of the addon until every library below it is there.
need_packages "build the addon" g++=g++ cmake=cmake make=make ninja=ninja-build
printf '  %-12s %s s\n' packages "$(seconds "$start")"

npm_packages() {
  node scripts/modules-fresh.mjs || npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  # `npx gradlink` and the scripts of package.json find the command of this checkout, which npm does not link itself.
  mkdir -p node_modules/.bin
  ln -sfn ../../bench/gradlink.js node_modules/.bin/gradlink
}
phase npm npm_packages

# Side by side: TypeScript has one thread, and the last unit of the addon leaves cores idle.
phase TypeScript node scripts/bundle.mjs --if-stale &
typescript=$!
status=0
phase native node scripts/native.mjs || status=1
wait "$typescript" || status=1
[ $status -eq 0 ] || exit 1
echo "gradlink is ready after $(seconds "$begun" | tr -d ' ') s."
