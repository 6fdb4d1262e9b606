"""``latency``, ``cost`` and ``token_usage``: what a run may take."""

from msgspec import Struct

from agentci._util.text.javascript import fixed, number
from agentci.evaluators.agentv.verdict import Finding
from agentci.model.sample import Sample
from agentci.model.transcript import Transcript


class Latency(Struct, frozen=True, kw_only=True):
    """No more than ``threshold`` milliseconds."""

    threshold: float

    def find(self, sample: Sample, transcript: Transcript) -> Finding:
        """See ``Rule``."""
        del sample
        taken = transcript.duration_ms
        if taken is None:
            return _unknown(
                "No duration data available in trace", "Execution duration not reported by provider"
            )
        most = number(self.threshold)
        sign = "<=" if taken <= self.threshold else ">"
        return _whether(
            f"Duration {number(taken)}ms {sign} {most}ms threshold",
            fits=taken <= self.threshold,
            reasoning=f"Execution took {number(taken)}ms (threshold: {most}ms)",
        )


class Cost(Struct, frozen=True, kw_only=True):
    """No more than ``budget`` US dollars."""

    budget: float

    def find(self, sample: Sample, transcript: Transcript) -> Finding:
        """See ``Rule``."""
        del sample
        cost = transcript.cost_usd
        if cost is None:
            return _unknown(
                "No cost data available in trace", "Execution cost not reported by provider"
            )
        paid, most = fixed(cost, 4), fixed(self.budget, 4)
        sign = "<=" if cost <= self.budget else ">"
        return _whether(
            f"Cost ${paid} {sign} ${most} budget",
            fits=cost <= self.budget,
            reasoning=f"Execution cost ${paid} (budget: ${most})",
        )


class Tokens(Struct, frozen=True, kw_only=True):
    """No more tokens than each limit that is given."""

    max_input: float | None
    max_output: float | None
    max_total: float | None

    def find(self, sample: Sample, transcript: Transcript) -> Finding:
        """See ``Rule``."""
        del sample
        usage = transcript.token_usage
        if usage is None:
            return _unknown(
                "No token usage data available in trace", "Token usage not reported by provider"
            )
        cached = usage.cached or 0
        total = usage.input + usage.output + cached
        checks = (
            ("Input", usage.input, self.max_input),
            ("Output", usage.output, self.max_output),
            ("Total", total, self.max_total),
        )
        hits: list[str] = []
        misses: list[str] = []
        for kind, used, most in checks:
            if most is not None:
                fits = used <= most
                line = f"{kind} tokens {number(used)} {'<=' if fits else '>'} {number(most)}"
                (hits if fits else misses).append(line)
        counts = (f"input={number(usage.input)}", f"output={number(usage.output)}")
        told = ", ".join((*counts, f"cached={number(cached)}", f"total={number(total)}"))
        return Finding(
            score=0.0 if misses else 1.0,
            hits=tuple(hits),
            misses=tuple(misses),
            reasoning=f"token_usage {told}",
        )


def _unknown(miss: str, reasoning: str) -> Finding:
    return Finding(score=0.0, misses=(miss,), reasoning=reasoning)


def _whether(line: str, *, fits: bool, reasoning: str) -> Finding:
    return Finding(
        score=1.0 if fits else 0.0,
        hits=(line,) if fits else (),
        misses=() if fits else (line,),
        reasoning=reasoning,
    )
