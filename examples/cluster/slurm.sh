#!/bin/bash
# A study on the nodes of a Slurm job:   sbatch slurm.sh STUDY.yaml OUTPUT
# The same command again continues a study that the time limit has ended.
#SBATCH --job-name=fairtrial
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=08:00:00
#SBATCH --signal=B:INT@120
set -euo pipefail

study=${1:?usage: sbatch slurm.sh STUDY.yaml OUTPUT}
output=${2:?usage: sbatch slurm.sh STUDY.yaml OUTPUT}

# A free port, a folder and worker ports of this job's own: other users of the nodes may run Ray, too.
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${hosts[0]}
on_head=(srun --nodes=1 --ntasks=1 --nodelist="$head" --overlap)
find_port='import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
find_ip='import ray; print(ray.util.get_node_ip_address())'
address="$("${on_head[@]}" python -c "$find_ip"):$("${on_head[@]}" python -c "$find_port")"
folder="/tmp/ray-$SLURM_JOB_ID"
# A password of the job's own; srun passes it on. Without one, others on the network could use Ray.
export RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(python -c 'import secrets; print(secrets.token_hex(32))')
export RAY_AUTH_TOKEN
shared=(--num-cpus="$SLURM_CPUS_PER_TASK" --min-worker-port=0 --max-worker-port=0
        --dashboard-agent-listen-port=0 --disable-usage-stats --block)

started=()
stop() {
    if ((${#started[@]})); then
        kill "${started[@]}" 2>/dev/null || true
        wait "${started[@]}" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap stop EXIT

"${on_head[@]}" ray start --head --port="${address##*:}" --node-ip-address="${address%:*}" \
    --include-dashboard=false --temp-dir="$folder" "${shared[@]}" &
started+=($!)
connect='import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)'
until python -c "$connect" "${address%:*}" "${address##*:}" 2>/dev/null; do
    kill -0 "${started[0]}"   # else the head node didn't start
    sleep 1
done
if ((SLURM_JOB_NUM_NODES > 1)); then
    srun --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) \
        --exclude="$head" --overlap ray start --address="$address" "${shared[@]}" &
    started+=($!)
fi

# Two minutes before the time limit Slurm interrupts this script, and it the study.
fairtrial run "$study" --executor ray --address "$address" --output "$output" --resume &
driver=$!
trap 'kill -INT $driver 2>/dev/null || true' INT TERM
status=0
wait "$driver" || status=$?
if kill -0 "$driver" 2>/dev/null; then   # the wait itself was interrupted
    status=0
    wait "$driver" || status=$?
fi
exit "$status"
