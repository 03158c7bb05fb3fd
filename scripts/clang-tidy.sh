#!/usr/bin/env bash
# clang-tidy over native/, on all cores. It reads a library as one unit (native/units.cmake), because half of its time goes
# into headers, which it checks as well. A unit whose preprocessed text passed before is not checked again. Any warning fails.
#
#   clang-tidy.sh           every check but the static analyzer, which takes three quarters of the time, and a dozen others, which
#                           take half of the rest
#   clang-tidy.sh --deep    with all of them: before a release, and after work on native/
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  '')
    checks='-clang-analyzer-*,-modernize-redundant-void-arg,-modernize-use-nullptr'
    for name in assert-side-effect infinite-loop multiple-statement-macro reserved-identifier stringview-nullptr \
      suspicious-semicolon suspicious-string-compare undelegated-constructor unused-raii unused-return-value; do
      checks+=,-bugprone-$name
    done
    ;;
  --deep) checks='' ;;
  *)
    echo "clang-tidy.sh: unknown argument '$1'; expected --deep or nothing" >&2
    exit 2
    ;;
esac
# A unit is made of includes of .cc files.
checks="$checks,-bugprone-suspicious-include"
checks=${checks#,}
passed=$PWD/build/tidy
commands=$passed/commands
export checks passed commands
mkdir -p "$commands"

# Without precompiled headers, which are GCC's; and every file in its unit, whoever works on it.
node node_modules/cmake-js/bin/cmake-js configure --directory native --out "$commands" --log-level warn \
  --CDCMAKE_DISABLE_PRECOMPILE_HEADERS=ON --CDGRADLINK_WHOLE_TARGETS=ON >"$passed/configure.log" 2>&1 || {
  cat "$passed/configure.log" >&2
  exit 1
}

tidy() {
  local file=$1 key
  # The very command of the build, but only preprocessing, names what clang-tidy would see.
  key=$(set -o pipefail && (echo "$checks" && cat .clang-tidy && node scripts/preprocess.mjs "$commands" "$file") | sha256sum | cut -d' ' -f1) || return 1
  [ -e "$passed/$key" ] && return 0
  # A build that was configured with --strict says -Werror, and clang does not know all of GCC's warnings.
  # What is given here is added to the checks of .clang-tidy.
  clang-tidy -p "$commands" --quiet --checks="$checks" --warnings-as-errors='*' --extra-arg=-Wno-error \
    --extra-arg=-Wno-unknown-warning-option "$file" || return 1
  : >"$passed/$key"
}
export -f tidy

node scripts/preprocess.mjs "$commands" | xargs -r -d '\n' -n 1 -P "$(nproc)" bash -c 'tidy "$0"'
