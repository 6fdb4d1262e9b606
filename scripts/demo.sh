#!/usr/bin/env bash
# demo.sh EXAMPLE - run the action on an example as GitHub runs it: entrypoint.py without arguments,
# inputs as INPUT_*, outputs and summary in files. Exits as the action does. Workflow commands are
# shown as GitHub shows them: folds by their titles, annotations by place and title.
set -uo pipefail
example=$1
runner=$(mktemp -d) || exit 1
trap 'rm -rf "$runner"' EXIT
touch "$runner/output" "$runner/summary"

env -i PATH="$PATH" HOME="$runner" LANG=C.UTF-8 CI=true GITHUB_ACTIONS=true RUNNER_TEMP="$runner" \
  GITHUB_WORKSPACE="$PWD" GITHUB_OUTPUT="$runner/output" GITHUB_STEP_SUMMARY="$runner/summary" \
  "INPUT_CONFIG=$example/eval_config.yaml" "INPUT_OUTPUT-DIR=agentci-results" "INPUT_FAIL-ON=failed" \
  .venv/bin/python -I entrypoint.py |
  sed -E -e '/^::endgroup::$/d' -e 's/^::group:://' \
    -e 's/^::(error|warning|notice) file=([^,]*),line=([0-9]+)[^:]*title=([^:]*)::.*/annotation on \2:\3: \4/' \
    -e '/^annotation /s/%3A/:/g'
code=${PIPESTATUS[0]}

printf '\n--- the comment, as a pull request gets it (the job summary is longer)\n\n'
cat agentci-results/comment.md
printf '\n--- the outputs, for later steps\n\n'
# NAME<<DELIMITER, the value, DELIMITER
awk '/<</ && !end { split($0, part, "<<"); end = part[2]; printf "%s: ", part[1]; next }
     $0 == end { end = ""; printf "\n"; next }
     { printf "%s", $0 }' "$runner/output"
printf '\nexit code %s; reports in agentci-results/\n' "$code"
case $example in
  *-failing) printf 'This demo fails on purpose: it shows what a regression looks like.\n' ;;
esac
exit "$code"
