// Opens stdin by its name, as many scripts do, and counts the turns in which a tool was called.
const { readFileSync } = require("node:fs");

const { invocations } = JSON.parse(readFileSync("/dev/stdin", "utf8"));
const scores = invocations.map((turn) => (turn.intermediate_steps.tool_calls.length > 0 ? 1 : 0));
const score = scores.reduce((sum, each) => sum + each, 0) / scores.length;

process.stdout.write(JSON.stringify({ score, per_invocation_scores: scores }));
