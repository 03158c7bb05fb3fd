#!/usr/bin/env bash
# Every check that is not a test (`npm run lint`): types, linters, formatters, layout, documentation, package. A warning
# is a failure. Each check's outcome goes to build/test-results/checks.txt, for the closing summary.
#
#   lint.sh           every check but clang-tidy's static analyzer, which takes three quarters of clang-tidy's time
#   lint.sh --deep    with it
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/system-packages.sh

need_packages "check the C++ sources" clang-format=clang-format clang-tidy=clang-tidy || exit 1
bash scripts/setup.sh || exit 1

results=build/test-results/checks.txt
mkdir -p build/test-results
: >"$results"
status=0

check() {
  local name=$1 log began=$SECONDS
  shift
  log=$(mktemp)
  if "$@" >"$log" 2>&1 </dev/null; then
    echo "pass $name" >>"$results"
    echo "ok      $name ($((SECONDS - began)) s)"
  else
    echo "fail $name" >>"$results"
    # In one piece, between those of other lanes.
    echo "FAILED  $name"$'\n'"$(cat "$log")"
    status=1
  fi
  rm -f "$log"
  return $status
}

shell_syntax() {
  local file failed=0
  for file in scripts/*.sh .ci/run; do bash -n "$file" || failed=1; done
  return $failed
}

# lane NAME: its checks beside those of the others, since most take one core. A process group of its own, which ends with
# this script.
lanes=()
set -m
lane() {
  "lane_$1" "${@:2}" &
  lanes+=($!)
}
trap 'for lane in "${lanes[@]}"; do kill -- "-$lane" 2>/dev/null; done' EXIT
trap 'exit 143' TERM HUP

lane_tidy() { check "clang-tidy" bash scripts/clang-tidy.sh "$@"; }
lane_eslint() { check "eslint" npx eslint --max-warnings 0 .; }
lane_others() {
  check "types (tsc)" npx tsc --noEmit
  check "documentation (typedoc)" npx typedoc --skipErrorChecking --out build/typedoc
  # publint looks at the declarations too, which only packing makes otherwise.
  check "declarations" npm run --silent build:types -- --unchecked
  check "package (publint)" npx publint --strict
  check "prettier" npx prettier --check --log-level warn .
  check "clang-format" bash scripts/clang-format.sh --check
  check "layout (includes, layers of lib, lengths, who loads the addon)" node scripts/check-layout.mjs
  check "shell syntax" shell_syntax
  check "prose (textlint)" node scripts/prose.mjs
  return $status
}
lane tidy "$@"
lane eslint
lane others
for lane in "${lanes[@]}"; do wait "$lane" || status=1; done
lanes=()
node scripts/lines.mjs
exit $status
