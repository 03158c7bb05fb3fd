#!/usr/bin/env bash
# Repeats tests of the gate beside busy processes, and prints what failed how often: a case whose outcome depends on how
# fast the machine is does not belong into the gate.
#
#   repeat.sh [--times N] [--load K] [PHASE...]    5 times beside 4 busy processes; PHASE: native, typescript, jobs or
#                                                  address, all of them without a name
set -uo pipefail
cd "$(dirname "$0")/.."

times=5
load=4
phases=()
refuse() {
  echo "repeat.sh: $1" >&2
  exit 2
}
whole() { [[ "$2" =~ ^[0-9]+$ ]] || refuse "$1 expects a whole number, got '$2'"; }
while [ $# -gt 0 ]; do
  case "$1" in
    --times | --load)
      whole "$1" "${2:-}"
      if [ "$1" = --times ]; then times=$2; else load=$2; fi
      shift
      ;;
    native | typescript | jobs | address) phases+=("$1") ;;
    *) refuse "unknown argument '$1'; expected --times N, --load K, native, typescript, jobs or address" ;;
  esac
  shift
done
[ ${#phases[@]} -gt 0 ] || phases=(native typescript jobs address)

kept=$(mktemp -d)
busy=()
trap 'kill "${busy[@]}" 2>/dev/null; rm -rf "$kept"' EXIT

# What compiles is no test, and compiles alone.
bash scripts/test.sh setup && bash scripts/test-native.sh plain --build --addon || exit 1
case " ${phases[*]} " in *' address '*) bash scripts/test-native.sh address --build --addon --no-tests || exit 1 ;; esac

for ((i = 0; i < load; i++)); do
  # Until this script has ended, however it ends.
  (while kill -0 $$ 2>/dev/null; do :; done) &
  busy+=($!)
done

failures=0
for ((i = 1; i <= times; i++)); do
  began=$SECONDS
  bash scripts/test.sh gate "${phases[@]}" >"$kept/log" 2>&1 </dev/null || {
    failures=$((failures + 1))
    cp "$kept/log" "build/repeat-$i.log"
  }
  cat build/test-results/failed.txt >>"$kept/failed"
  echo "$i of $times: $(cat build/test-results/counted.txt), $((SECONDS - began)) s"
done
echo "Beside $load busy processes, $failures of $times runs failed (build/repeat-*.log)."
sort "$kept/failed" | uniq -c | sort -rn
[ $failures -eq 0 ]
