#!/usr/bin/env bash
# clang-tidy over native/*/*.cc, on all cores. A file whose preprocessed text passed before is not checked again, so that
# only the first run takes minutes. Any warning fails.
#
#   clang-tidy.sh           every check but the static analyzer, which takes three quarters of the time
#   clang-tidy.sh --deep    with the static analyzer: before a release, and after work on native/
set -euo pipefail
cd "$(dirname "$0")/.."

[ -f build/cmake/compile_commands.json ] || node scripts/build.mjs >/dev/null
case "${1:-}" in
  '') checks='-clang-analyzer-*' ;;
  --deep) checks='' ;;
  *)
    echo "clang-tidy.sh: unknown argument '$1'; expected --deep or nothing" >&2
    exit 2
    ;;
esac
export checks
passed=$PWD/build/tidy
mkdir -p "$passed"

tidy() {
  local file=$1 key
  # The very command of the build, but only preprocessing, names what clang-tidy would see.
  key=$(set -o pipefail && (echo "$checks" && cat .clang-tidy && node scripts/preprocess.mjs "$file") | sha256sum | cut -d' ' -f1) || return 1
  [ -e "$2/$key" ] && return 0
  # A build that was configured with --strict says -Werror, and clang does not know all of GCC's warnings.
  # What is given here is added to the checks of .clang-tidy.
  clang-tidy -p build/cmake --quiet --checks="$checks" --warnings-as-errors='*' --extra-arg=-Wno-error \
    --extra-arg=-Wno-unknown-warning-option "$file" || return 1
  : >"$2/$key"
}
export -f tidy

find native -name '*.cc' -not -path 'native/test/*' -print0 |
  xargs -0 -r -n 1 -P "$(nproc)" bash -c 'tidy "$0" "'"$passed"'"'
