"""What an evaluator requires."""

from dataclasses import dataclass
from typing import Any

from agentci.evaluators.evaluator_type import PluginEvaluator
from agentci.evaluators.fields import Entry
from agentci.model.gate import EvaluatorSettings
from agentci.model.requests import EvaluatorIdentity
from agentci.model.values import Place
from agentci.runner.gate_snapshot import apply_settings, read_settings


@dataclass
class OfPlugin:
    """An evaluator of a plugin."""

    identity: EvaluatorIdentity
    needs: tuple[Any, ...] = ()


def test_evaluator_of_plugin_keeps_its_threshold() -> None:
    identity = EvaluatorIdentity(
        name="own",
        type="plugin",
        criterion="score >= 0.1",
        threshold=0.1,
        required=False,
        place=Place(file="a.yaml"),
    )
    own: Any = OfPlugin(identity)
    evaluator = PluginEvaluator(own, Entry(name="own", type="plugin"), title="the type `plugin`")
    base = EvaluatorSettings(name="own", threshold=0.8, criterion="score >= 0.8", required=True)
    applied = read_settings(apply_settings(evaluator, base))
    assert (applied.required, applied.threshold) == (True, 0.1)
    assert not evaluator.identity.required
