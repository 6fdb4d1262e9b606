"""Who judges, as an entry says it."""

from agentci.evaluators.agentv.agentv_evaluator import Surroundings
from agentci.evaluators.judge_config import JudgeSpec
from agentci.model.judging import WantedPanel


def wanted_panel(name: str, own: JudgeSpec | None, surroundings: Surroundings) -> WantedPanel:
    """The panel of the evaluator ``name``.

    Args:
        own: what its entry says.

    Raises:
        InputError: nobody said who judges.
    """
    place = surroundings.place_of("type" if own is None else "judge")
    return WantedPanel(panel=surroundings.judges.panel(own, place), name=name, place=place)
