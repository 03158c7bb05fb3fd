# Sourced by setup.sh, test.sh and lint.sh: what the system must offer, and how to come by it.
# shellcheck shell=bash

# has_package PROBE: a command of that name, or, with a slash in it, a file.
has_package() {
  case "$1" in
    */*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
  esac
}

# need_packages PURPOSE PROBE=PACKAGE...: installs with apt, as root, the packages whose probe is missing; where it
# cannot, says what to install and fails.
need_packages() {
  local purpose=$1 entry missing=()
  shift
  for entry in "$@"; do
    has_package "${entry%%=*}" || missing+=("${entry#*=}")
  done
  [ ${#missing[@]} -eq 0 ] && return 0

  if ! command -v apt-get >/dev/null 2>&1; then
    {
      echo "Missing to $purpose, by their Debian names: ${missing[*]}."
      echo "Install what your distribution calls them (Fedora, RHEL: g++ is gcc-c++, libgtest-dev is gtest-devel,"
      echo "clang-format and clang-tidy are clang-tools-extra), then run this again."
    } >&2
    return 1
  fi
  if [ "$(id -u)" -ne 0 ]; then
    {
      echo "Missing to $purpose: ${missing[*]}. Install with"
      echo "  sudo apt-get update && sudo apt-get install -y ${missing[*]}"
      echo "then run this again."
    } >&2
    return 1
  fi
  echo "Installing, to $purpose: ${missing[*]}"
  update_apt_once
  if ! DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    >/tmp/gradlink-apt.$$ 2>&1 </dev/null; then
    cat /tmp/gradlink-apt.$$ >&2
    rm -f /tmp/gradlink-apt.$$
    echo "apt-get could not install ${missing[*]}; see above." >&2
    return 1
  fi
  rm -f /tmp/gradlink-apt.$$
}

# A failed update is not the end: the package may be in the lists that are there.
update_apt_once() {
  [ -n "${GRADLINK_APT_UPDATED:-}" ] && return 0
  export GRADLINK_APT_UPDATED=1
  apt-get update -qq </dev/null >/dev/null 2>&1 || echo "apt-get update failed; trying with the lists that are here." >&2
}

# need_node: Node of a version that runs this, with npm.
need_node() {
  if ! command -v node >/dev/null 2>&1; then
    echo "Node is missing. Install Node 20.19 or newer (https://nodejs.org, or your distribution), then run this again." >&2
    return 1
  fi
  if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'; then
    echo "Node $(node --version) is too old: gradlink needs 20.19 or newer. Install one, then run this again." >&2
    return 1
  fi
  if ! command -v npm >/dev/null 2>&1; then
    echo "npm is missing beside $(command -v node). It comes with Node from nodejs.org; on Debian it is a package of its own (npm)." >&2
    return 1
  fi
}
