# Sourced by the builds of peers: makes the folder PREFIX, whose whole path is $prefix from there on, and goes to a copy of
# the sources that the script's end removes.
#
#   copied SOURCES PREFIX
copied() {
  mkdir -p "$2"
  prefix=$(realpath "$2")
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cp -r "$1/." "$work"
  cd "$work"
}
