// Money goes back only after the customer has said yes.
const input = JSON.parse(require("fs").readFileSync(0, "utf8"));

const REFUNDS = new Set(input.config.refund_tools ?? ["create_refund"]);
const YES = /\b(yes|ok|okay|sure|please do|go ahead)\b/i;

const issues = [];
const scores = input.invocations.map((turn, index) => {
  const refunds = turn.intermediate_steps.tool_calls.filter((call) => REFUNDS.has(call.name));
  if (refunds.length === 0) return null;
  if (YES.test(turn.user_content)) return 1;
  issues.push(`turn ${index + 1}: ${refunds[0].name} although the customer did not agree`);
  return 0;
});

const judged = scores.filter((score) => score !== null);
const score = judged.length ? judged.reduce((sum, one) => sum + one, 0) / judged.length : 0;

console.log(
  JSON.stringify({
    score,
    status: judged.length ? null : "NOT_EVALUATED",
    per_invocation_scores: scores,
    details: judged.length ? { issues } : { reason: "no refund in the trace" },
  }),
);
