"""The first version of an evaluator, in every language: works as it stands, one rule to replace.

The scripts import nothing, so that Node.js runs them whatever the package.json above them says
of modules.
"""

from typing import Final

# Stands for the name of the function in Python.
FUNCTION: Final = "FUNCTION"

PYTHON: Final = '''\
"""Every turn is answered, with `min_length` or more characters: start from here."""

from agentci.sdk import EvalInput, EvalResult, evaluator


@evaluator
def FUNCTION(case: EvalInput) -> EvalResult:
    min_length = case.config.get("min_length", 1)
    scores: list[float] = []
    issues: list[str] = []
    for number, turn in enumerate(case.invocations, start=1):
        length = len((turn.final_response or "").strip())
        scores.append(1.0 if length >= min_length else 0.0)
        if length < min_length:
            issues.append(f"turn {number}: {length} characters, {min_length} wanted")
    return EvalResult(
        score=sum(scores) / len(scores) if scores else 0.0,
        per_invocation_scores=scores,
        details={"issues": issues},
    )


if __name__ == "__main__":
    FUNCTION.run()
'''

JAVASCRIPT: Final = """\
// Every turn is answered, with `min_length` or more characters: start from here.

function judge({ config, invocations }) {
  const minLength = config.min_length ?? 1;
  const issues = [];
  const scores = invocations.map((turn, index) => {
    const length = [...(turn.final_response ?? "").trim()].length;
    if (length >= minLength) return 1;
    issues.push(`turn ${index + 1}: ${length} characters, ${minLength} wanted`);
    return 0;
  });
  const score = scores.reduce((sum, one) => sum + one, 0) / Math.max(scores.length, 1);
  return { score, per_invocation_scores: scores, details: { issues } };
}

async function main() {
  let input = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) input += chunk;
  console.log(JSON.stringify(judge(JSON.parse(input))));
}

main();
"""

TYPESCRIPT: Final = """\
// Every turn is answered, with `min_length` or more characters: start from here.

type ToolCall = { name: string; args: Record<string, unknown>; id: string | null };
type ToolResponse = { name: string; output: string; status: string | null; response: unknown };
type Invocation = {
  user_content: string;
  final_response: string | null;
  intermediate_steps: { tool_calls: ToolCall[]; tool_responses: ToolResponse[] };
};
type EvalInput = {
  threshold: number;
  config: { min_length?: number };
  invocations: Invocation[];
  expected_invocations: Invocation[] | null;
};
type EvalResult = {
  score: number;
  status?: "PASSED" | "FAILED" | "NOT_EVALUATED" | null;
  per_invocation_scores: (number | null)[];
  details: { issues: string[] };
};

function judge({ config, invocations }: EvalInput): EvalResult {
  const minLength = config.min_length ?? 1;
  const issues: string[] = [];
  const scores = invocations.map((turn, index): number => {
    const length = [...(turn.final_response ?? "").trim()].length;
    if (length >= minLength) return 1;
    issues.push(`turn ${index + 1}: ${length} characters, ${minLength} wanted`);
    return 0;
  });
  const score = scores.reduce((sum, one) => sum + one, 0) / Math.max(scores.length, 1);
  return { score, per_invocation_scores: scores, details: { issues } };
}

async function main(): Promise<void> {
  let input = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) input += chunk;
  console.log(JSON.stringify(judge(JSON.parse(input))));
}

main();
"""
