#!/bin/bash
# Slurm with enroot and pyxis: the image of this folder, a rank for each GPU.
#
#   enroot import --output train.sqsh docker://registry.example/train
#   sbatch slurm.sh
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=8
#SBATCH --exclusive
set -euo pipefail

container=(--container-image="$PWD/train.sqsh" --container-mounts="$PWD/runs:/app/runs")
mkdir -p runs

if [ "${1:-mpi}" = mpi ]; then
  # The Open MPI of the image, started by Slurm's PMIx. enroot's hook 50-slurm-pmi.sh brings PMIx in.
  srun --mpi=pmix "${container[@]}" node train.js
else
  # Without MPI: the ranks meet where rank 0 listens, and one secret keeps others out.
  MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
  MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
  GRADLINK_JOB=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  export MASTER_ADDR MASTER_PORT GRADLINK_JOB
  srun --mpi=none "${container[@]}" node train.js
fi
