#!/bin/sh
# A Slurm of one node on this machine, with a munge of its own: nothing of it is in the system's folders.
#
#   slurm.sh up FOLDER      configures it in FOLDER and starts it; done when the node takes jobs. Prints the path for
#                           SLURM_CONF
#   slurm.sh down FOLDER    ends it and its jobs; FOLDER can be removed then
#
# Needs root and Debian's slurm-wlm and munge. Listens on loopback only.
set -eu
folder=$2
munge=$folder/munge
node=$(hostname -s)
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

up() {
  mkdir -p "$munge" "$folder/state" "$folder/spool"
  # munged refuses folders that others may write to or its socket's users cannot enter.
  chmod 755 "$folder" "$munge"
  (umask 077 && head -c 128 /dev/urandom >"$munge/key")
  # shellcheck disable=SC2046
  set -- $(free_ports 2)
  cat >"$SLURM_CONF" <<END
ClusterName=gradlink
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$1
SlurmdPort=$2
AuthType=auth/munge
AuthInfo=socket=$munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=pmix
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$node NodeAddr=127.0.0.1 CPUs=32 State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP
END
  # --force: it runs as root here, which it advises against.
  munged --force --socket="$munge/socket" --key-file="$munge/key" --pid-file="$munge/pid" \
    --log-file="$munge/log" --seed-file="$munge/seed" 2>"$munge/complaints" ||
    { cat "$munge/complaints" "$munge/log" >&2; exit 1; }
  slurmctld -c
  slurmd -c
  tries=0
  until [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ]; then
      echo "slurm.sh: the node does not come up" >&2
      cat "$folder/slurmctld.log" "$folder/slurmd.log" >&2
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
  scancel --quiet --user=root --signal=KILL 2>/dev/null || true
  end "$folder/slurmd.pid"
  end "$folder/slurmctld.pid"
  end "$munge/pid"
}

case "$1" in
  up) up ;;
  down) down ;;
  *)
    echo "usage: slurm.sh up|down FOLDER" >&2
    exit 2
    ;;
esac
