"""Written over the SDK: every answer has at least so many words."""

from agentevals_evaluator_sdk import EvalInput, EvalResult, evaluator


@evaluator
def wordy_enough(case: EvalInput) -> EvalResult:
    wanted = case.config.get("words", 3)
    counts = {turn.invocation_id: len((turn.final_response or "").split()) for turn in case.invocations}
    scores = [min(1.0, count / wanted) for count in counts.values()]
    issues = [f"{turn}: {count} of {wanted} words" for turn, count in counts.items() if count < wanted]
    return EvalResult(
        score=min(scores, default=0.0), per_invocation_scores=scores, details={"issues": issues}
    )


if __name__ == "__main__":
    wordy_enough.run()
