#!/bin/sh
# A Slurm on this machine, with a munge of its own: nothing of it is in the system's folders.
#
#   slurm.sh up FOLDER            configures one of one node in FOLDER and starts it; done when the node takes jobs. Prints
#                                 the path for SLURM_CONF
#   slurm.sh up FOLDER HOST...    one with a node on each of these hosts of netns.sh, and its controller on the first
#   slurm.sh down FOLDER          ends it and its jobs; FOLDER can be removed then
#
# Needs root and Debian's slurm-wlm and munge. Without hosts it listens on loopback only.
set -eu
action=$1
folder=$2
shift 2
hosts=$*
first=${1:-}
munge=$folder/munge
netns=$(dirname "$0")/netns.sh
SLURM_CONF=$folder/slurm.conf
export SLURM_CONF

# Ports that are free now; Slurm takes none of the system's choice.
free_ports() {
  port=$((17000 + $$ % 10000))
  found=
  while [ "$(echo "$found" | wc -w)" -lt "$1" ]; do
    if ! grep -qi ":$(printf %04X "$port") " /proc/net/tcp /proc/net/tcp6; then found="$found $port"; fi
    port=$((port + 1))
  done
  echo "$found"
}

# A command on a host; here where there are none.
on() {
  host=$1
  shift
  if [ -z "$hosts" ]; then "$@"; else "$netns" enter "$host" "$@"; fi
}

address_of() {
  if [ -z "$hosts" ]; then echo 127.0.0.1; else awk -v host="$1" '$2 == host { print $1 }' /run/gradlink-test-hosts/*.addresses; fi
}

up() {
  nodes=${hosts:-$(hostname -s)}
  controller=${first:-$nodes}
  mkdir -p "$munge" "$folder/state"
  # munged refuses folders that others may write to or its socket's users cannot enter.
  chmod 755 "$folder" "$munge"
  (umask 077 && head -c 128 /dev/urandom >"$munge/key")
  # shellcheck disable=SC2046
  set -- $(free_ports 2)
  cat >"$SLURM_CONF" <<END
ClusterName=gradlink
SlurmctldHost=$controller($(address_of "$controller"))
SlurmctldPort=$1
SlurmdPort=$2
AuthType=auth/munge
AuthInfo=socket=$munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
TmpFS=$folder/tmp-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=pmix
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
  for node in $nodes; do
    mkdir -p "$folder/spool-$node" "$folder/tmp-$node"
    echo "NodeName=$node NodeAddr=$(address_of "$node") CPUs=32 State=UNKNOWN" >>"$SLURM_CONF"
  done
  # --force: it runs as root here, which it advises against.
  munged --force --socket="$munge/socket" --key-file="$munge/key" --pid-file="$munge/pid" \
    --log-file="$munge/log" --seed-file="$munge/seed" 2>"$munge/complaints" ||
    { cat "$munge/complaints" "$munge/log" >&2; exit 1; }
  on "$controller" slurmctld -c
  for node in $nodes; do on "$node" slurmd -c; done
  tries=0
  until [ "$(on "$controller" sinfo --noheader --format=%T 2>/dev/null)" = idle ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ]; then
      echo "slurm.sh: the nodes do not come up" >&2
      cat "$folder"/*.log >&2
      exit 1
    fi
    sleep 0.1
  done
  echo "$SLURM_CONF"
}

# Ends the process of a pid file and waits until it is gone.
end() {
  [ -s "$1" ] || return 0
  pid=$(cat "$1")
  kill "$pid" 2>/dev/null || return 0
  tries=0
  while kill -0 "$pid" 2>/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || kill -s KILL "$pid" 2>/dev/null || true
    sleep 0.1
  done
}

down() {
  # On hosts its jobs end with the hosts.
  if grep -q 'SlurmctldHost=.*(127.0.0.1)' "$SLURM_CONF"; then
    scancel --quiet --user=root --signal=KILL 2>/dev/null || true
  fi
  for pid_file in "$folder"/slurmd-*.pid; do end "$pid_file"; done
  end "$folder/slurmctld.pid"
  end "$munge/pid"
}

case "$action" in
  up) up ;;
  down) down ;;
  *)
    echo "usage: slurm.sh up FOLDER [HOST...] | down FOLDER" >&2
    exit 2
    ;;
esac
