"""Every amount of money in an answer must come from the customer or from a tool."""

import re

from agentevals_evaluator_sdk import EvalInput, EvalResult, evaluator

AMOUNT = re.compile(r"\d+\.\d{2}")


@evaluator
def amounts_are_grounded(input: EvalInput) -> EvalResult:
    known: set[str] = set()
    scores: list[float] = []
    issues: list[str] = []
    for number, turn in enumerate(input.invocations, start=1):
        known.update(AMOUNT.findall(turn.user_content))
        for response in turn.intermediate_steps.tool_responses:
            known.update(AMOUNT.findall(response.output))
        invented = [a for a in AMOUNT.findall(turn.final_response or "") if a not in known]
        issues += [f"turn {number}: no tool returned {amount}" for amount in invented]
        scores.append(0.0 if invented else 1.0)
    return EvalResult(
        score=sum(scores) / len(scores) if scores else 0.0,
        per_invocation_scores=scores,
        details={"issues": issues},
    )


if __name__ == "__main__":
    amounts_are_grounded.run()
