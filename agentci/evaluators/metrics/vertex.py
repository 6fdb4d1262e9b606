"""What is known of the metrics that Google's ADK has computed by Vertex AI."""

from msgspec import Struct


class HostedMetric(Struct, frozen=True, kw_only=True):
    """A metric of ADK 2.13, as its evaluators document it.

    Attributes:
        purpose: what it measures, in a sentence.
        needs_golden: whether it is given golden turns, one a turn.
        whole: whether it scores a conversation as a whole, else turn by turn.
        lowest, highest: the ends of its scale.
    """

    purpose: str
    needs_golden: bool = False
    whole: bool = False
    lowest: float = 0.0
    highest: float = 1.0

    def share(self, score: float) -> float:
        """A score of its scale as one from 0 to 1; what is beyond it stays beyond."""
        return (score - self.lowest) / (self.highest - self.lowest)

    def scaled(self, share: float) -> float:
        """The score of its scale that ``share`` stands for."""
        return self.lowest + share * (self.highest - self.lowest)
