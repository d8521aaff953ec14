#!/usr/bin/env bash
# Makes v0.1.0.tar.zst: the home that the program of commit 25cee547, the last one
# before the redesign, leaves behind. THOLE is that program, LAB the cache of agent CLIs.
#
#   git worktree add /tmp/v0.1.0 25cee547 && cd /tmp/v0.1.0 && CGO_ENABLED=0 go build -o /tmp/thole-v0.1.0 ./cmd/thole
#   THOLE=/tmp/thole-v0.1.0 LAB=~/.cache/thole-lab test/e2e/kept/testdata/v0.1.0.sh v0.1.0.tar.zst
set -euo pipefail
out=$(realpath "$1")
home=$(mktemp -d /tmp/kept.XXXX)
t() { env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$home" THOLE_HOME="$home" "$THOLE" "$@"; }
cat > "$home/config.toml" <<'TOML'
[executor]
bubblewrap = "auto"
remove_after = "48h"

[asks]
input_timeout = "12h"
default_reply = "go on"

[delivery]
min_interval = "1s"
TOML
env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$home" THOLE_HOME="$home" \
  THOLE_PROVIDERS_CODEX="$(ls "$LAB"/codex-0.166.0/node_modules/@openai/codex/vendor/*/bin/codex)" \
  THOLE_PROVIDERS_CLAUDE="$(ls "$LAB"/claude-2.1.325/node_modules/@anthropic-ai/claude-code-linux-*/claude)" \
  THOLE_PROVIDERS_OPENCODE="$(ls "$LAB"/opencode-1.18.33/node_modules/opencode-linux-*/bin/opencode)" \
  "$THOLE" up --demo --no-browser --listen 127.0.0.1:0 2>"$home.log" >/dev/null &
up=$!
trap 'kill $up 2>/dev/null || true' EXIT
until [ -S "$home/run/thole.sock" ] || [ -S "$home/thole.sock" ]; do kill -0 $up; sleep 0.1; done

# One thread of each agent: reasoning, todos, a file, a command, and a second turn.
n=1
declare -A id
for model in test/default codex/default claude/claude-sonnet-4-5 opencode/default; do
  name=${model%%/*}
  id[$name]=$(printf '018f0000-0000-7000-8000-0000000000%02d' $n); n=$((n+1))
  t thread start --id "${id[$name]}" --model "$model" --profile full \
    "sim: think weigh it ;; todo [x] look | [~] write | test ;; run echo kept by $name > kept.txt; cat kept.txt ;; say hello from v0.1.0, %tool%"
  t thread send "${id[$name]}" "sim: run ls ;; usage in=10 cached=5 out=7 ;; say second answer of $name"
done
codex=${id[codex]} claude=${id[claude]} opencode=${id[opencode]} test=${id[test]}

# Jobs of the codex thread: delivered with an artifact, run as a command, failed, cancelled, still running.
policy='--delivery-read-only true --delivery-requires-approval false --delivery-requires-network false --delivery-requires-write-access false'
job() { t --json job submit "$@" | jq -r .job_id; }
j=$(job --thread-id "$codex" --task-kind ci --summary "unit tests" $policy)
head -c 40000 /dev/zero | tr '\0' 'r' > "$home.report"
t job complete --job-id "$j" --summary "412 passed" --result-file "$home.report"
until t --json job query "$j" | grep -q delivered || t --json batch list | grep -q '"delivered"'; do sleep 0.3; done
j=$(job --thread-id "$claude" --task-kind build --summary "nightly build" $policy)
t job fail --job-id "$j" --reason "3 of 412 failed"
j=$(job --thread-id "$opencode" --task-kind lint --summary "lint" $policy); t job cancel --job-id "$j"
job --thread-id "$opencode" --task-kind soak --summary "soak" --dedupe-key soak-1 $policy
t job run --wait --thread-id "$test" --summary "a command" $policy -- echo from the command
t --json batch list
# Two batches for a person: one whose turn was interrupted, so that it is held, and one of which
# nobody said what its turn may need.
j=$(job --thread-id "$test" --task-kind deploy --summary "deploy" $policy)
t job complete --job-id "$j" --summary "sim: hang"
until t thread show "$test" | grep -q 'inProgress'; do sleep 0.3; done
t thread interrupt "$test"
until t --json batch list --held | grep -q batch_id; do sleep 0.3; done
j=$(job --thread-id "$claude" --task-kind deploy --summary "deploy")
t job complete --job-id "$j" --summary "deployed, please confirm"

# A question that nobody has answered, a message that waits behind it, an archived thread, a token.
asks=018f0000-0000-7000-8000-000000000010
t thread start --id "$asks" --model claude/claude-sonnet-4-5 --profile ask > /dev/null
t thread send --detach "$asks" "sim: ask Which colour? | red | blue ;; say you chose %tool%"
until t thread show "$asks" | grep -q 'answer with'; do sleep 0.3; done
t thread send --detach --queue "$asks" "sim: say the message that waited"
archived=018f0000-0000-7000-8000-000000000011
t thread start --id "$archived" --model test/default "sim: say put away"
t thread archive "$archived"
t token create kept > /dev/null
for x in "${id[@]}"; do t thread close "$x"; done
t check

# What it said of all this, to compare with.
mkdir "$home/said"
for x in "${id[@]}" "$asks" "$archived"; do
  t --json thread show "$x" > "$home/said/thread-$x.json"
done
t --json thread list > "$home/said/threads.json"
t --json job list > "$home/said/jobs.json"
t --json batch list > "$home/said/batches.json"
t --json audit list > "$home/said/audit.json"

# The machine loses power: nothing ends in order.
kill -9 $up
for pid in $(grep -lz "THOLE_HOME=$home" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); do kill -9 "$pid" 2>/dev/null || true; done
rm -f "$home"/*.sock "$home"/*.lock
for x in "$home"/x/*; do grep -q "$asks" "$x/spec.json" || rm -rf "$x"; done
find "$home" -type s -delete
rm -rf "$home"/x/*/tmp/* "$home"/thole.db-shm
find "$home" -path '*/sessions/*.key' -delete
for x in "$home"/x/*/run/token; do echo 0 > "$x"; done
rm -f "$home.report" "$home.log"
tar --sort=name --mtime=2026-11-16 --owner=0 --group=0 --numeric-owner -C "$home" -c . | zstd -q -19 --long=27 -f -o "$out"
if grep -rl -e "$home" -e "$LAB" "$home"; then echo "these name paths of this machine" >&2; exit 1; fi
rm -rf "$home"
