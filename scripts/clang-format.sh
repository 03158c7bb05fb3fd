#!/usr/bin/env bash
# clang-format over native/, test/fakes and lab/peers: `-i` rewrites, `--check` (the default) fails on a difference.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:---check}
case "$mode" in
  -i) flags=(-i) ;;
  --check) flags=(--dry-run -Werror) ;;
  *)
    echo "Expected -i or --check but received $mode." >&2
    exit 2
    ;;
esac
find native lab test/fakes -type f \( -name '*.cc' -o -name '*.h' -o -name '*.c' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 -r clang-format "${flags[@]}"
