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
    cat "$log"
    echo "fail $name" >>"$results"
    echo "FAILED  $name"
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

# clang-tidy takes longest, and the others take a core: it runs beside them, and says what it found after them.
# A process group of its own, which ends with this script.
tidied=build/test-results/clang-tidy.log
set -m
check "clang-tidy" bash scripts/clang-tidy.sh "$@" >"$tidied" 2>&1 &
tidying=$!
set +m
trap 'kill -- "-$tidying" 2>/dev/null' EXIT
trap 'exit 143' TERM HUP

check "types (tsc)" npx tsc --noEmit
check "eslint" npx eslint --max-warnings 0 .
check "prettier" npx prettier --check --log-level warn .
check "clang-format" bash scripts/clang-format.sh --check
check "layout (includes, layers of lib, lengths, who loads the addon)" node scripts/check-layout.mjs
check "shell syntax" shell_syntax
check "prose (textlint)" node scripts/prose.mjs
check "documentation (typedoc)" npx typedoc --out build/typedoc
# publint looks at the declarations too, which only packing makes otherwise.
check "declarations" npm run --silent build:types
check "package (publint)" npx publint --strict
wait "$tidying" || status=1
trap - EXIT
cat "$tidied"
exit $status
