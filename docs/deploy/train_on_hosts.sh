#!/bin/sh
# Pre-trains on the hosts that there are, and goes on with those that are left when one disappears.
#
#   train_on_hosts.sh DISCOVER SAMPLES COMMAND...
#
# DISCOVER prints a line for each host that can be used now, such as node0:8, as the program of
# horovodrun's --host-discovery-script does. SAMPLES is the size of an update, whatever the number
# of workers is. COMMAND is a training, such as python scripts/run_pretraining_hvd.py --data ...
#
# The training gets --resume. After a failure the hosts are discovered anew; after five failures in a
# row, each within QUICK seconds (default: 60), the error isn't the hosts', and the script gives up.
discover=$1 samples=$2
shift 2
quick=0
while [ "$quick" -lt 5 ]; do
    began=$(date +%s)
    hosts=$("$discover" | paste -sd, -)
    workers=$(echo "$hosts" | awk -F, '{for (i = 1; i <= NF; i++) {split($i, host, ":"); n += host[2]}
        print n + 0}')
    # all slots, or as many as can share the samples
    while [ "$workers" -gt 1 ] && [ $((samples % workers)) -ne 0 ]; do workers=$((workers - 1)); done
    if [ "$workers" -gt 0 ]; then
        echo "training with $workers workers on $hosts" >&2
        horovodrun ${HOROVODRUN_FLAGS-} -np "$workers" -H "$hosts" \
            "$@" --total_batch_size "$samples" --resume && exit 0
        if [ $(($(date +%s) - began)) -lt "${QUICK:-60}" ]; then quick=$((quick + 1)); else quick=0; fi
    else
        echo 'there are no hosts' >&2
    fi
    sleep "${PAUSE:-10}"
done
echo 'giving up: five failures in a row, each soon after the start' >&2
exit 1
