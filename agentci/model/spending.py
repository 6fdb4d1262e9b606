"""What models cost: in calls, tokens and dollars."""

from collections.abc import Iterable

from msgspec import Struct


class Charge(Struct, frozen=True, kw_only=True):
    """What something costs, or can cost at most."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: "Charge") -> "Charge":
        return Charge(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            usd=self.usd + other.usd,
        )

    def __sub__(self, other: "Charge") -> "Charge":
        return self + Charge(calls=-other.calls, tokens=-other.tokens, usd=-other.usd)


class Spending(Struct, frozen=True, kw_only=True):
    """What the judges of one config cost.

    Attributes:
        config: as shown to the user.
        spent: in this run, on whatever came of it.
        saved: by replies of earlier runs.
        priced: whether the dollars are known, since all of its models have prices.
    """

    config: str
    spent: Charge
    saved: Charge
    priced: bool

    def __add__(self, other: "Spending") -> "Spending":
        """Of the same config, in two parts of a run."""
        return Spending(
            config=self.config,
            spent=self.spent + other.spent,
            saved=self.saved + other.saved,
            priced=self.priced and other.priced,
        )


def by_config(parts: Iterable[Spending]) -> tuple[Spending, ...]:
    """What all parts of a run spent on the judges of each config."""
    whole: dict[str, Spending] = {}
    for each in parts:
        known = whole.get(each.config)
        whole[each.config] = each if known is None else known + each
    return tuple(whole.values())
