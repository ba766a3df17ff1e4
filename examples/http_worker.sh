#!/bin/sh
# A worker with curl: claims one job after another from `ropeway serve`, and runs a command for each.
#
#     sh examples/http_worker.sh             until Ctrl-C
#     sh examples/http_worker.sh --once      until nothing is left to do
#
# It needs curl and sed. ROPEWAY_URL is the server (http://127.0.0.1:8787), ROPEWAY_TOKEN its token, ROPEWAY_QUEUE the
# queue (default). A job of the type `shout` with the payload "hello" completes with the result "HELLO".
set -eu

server=${ROPEWAY_URL:-http://127.0.0.1:8787}/v1/queues/${ROPEWAY_QUEUE:-default}
wait=20
[ "${1:-}" = --once ] && wait=0

# Repeats what the server could not take now, and a call whose answer was lost: its token says what it is about.
post() {
    curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused --max-time 60 \
        --header 'content-type: application/json' ${ROPEWAY_TOKEN:+--header "authorization: Bearer $ROPEWAY_TOKEN"} \
        --data "$2" "$server/$1"
}

# The text of a field of a claimed job. (Use jq for payloads that are more than a word.)
field() { printf '%s' "$claimed" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

while :; do
    claimed=$(post claim "{\"worker\":\"curl-$$\",\"types\":[\"shout\"],\"wait\":$wait}")
    id=$(field id) token=$(field token)
    if [ -z "$id" ]; then
        [ "$wait" = 0 ] && exit 0
        continue
    fi
    # Heartbeats while it works: without them the job would be given to another worker after 30 s.
    (while sleep 5; do post "jobs/$id/heartbeat" "{\"token\":\"$token\"}" || kill $$; done) &
    heart=$!
    if result=$(field payload | tr '[:lower:]' '[:upper:]'); then
        post "jobs/$id/complete" "{\"token\":\"$token\",\"result\":\"$result\"}"
    else
        post "jobs/$id/fail" "{\"token\":\"$token\",\"error\":\"the command failed\"}"
    fi
    kill "$heart" 2>/dev/null || true
    echo "$id: $result"
done
