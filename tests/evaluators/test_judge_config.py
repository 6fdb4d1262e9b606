"""Judge settings of the config, overridden per evaluator and on the command line."""

from typing import Any

import pytest

from agentci.errors import InputError
from agentci.evaluators.judge_config import (
    KEY_VARIABLES,
    PROVIDER_NAMES,
    JudgeSettings,
    JudgeSpec,
    SharedJudgeSpec,
    make_judge_settings,
)
from agentci.judges.providers import COMMAND_PROVIDER, PROVIDERS
from agentci.model.judges import BudgetLimits, JudgeConfig, ModelSettings, TokenPrices
from agentci.model.values import Place

PLACE = Place(file="c.yaml", line=3, column=1)
SHARED = {"provider": "openai", "model": "m", "effort": "low", "samples": 3, "max_calls": 9}


def panel(
    own: dict[str, Any] | None = None, shared: dict[str, Any] | None = None, model: str = ""
) -> JudgeConfig:
    judges = JudgeSettings(
        budget_id="c.yaml",
        shared=None if shared is None else SharedJudgeSpec.model_validate(shared),
        model=model,
    )
    spec = None if own is None else JudgeSpec.model_validate(own)
    return judges.require(spec, name="e", place=PLACE).judge


def test_config_accepts_every_provider_name() -> None:
    assert set(PROVIDER_NAMES) == {*PROVIDERS, COMMAND_PROVIDER}


def test_shared_judge_settings_apply_to_evaluator() -> None:
    settings = ModelSettings(
        provider="openai", model="m", effort="low", key_variable="OPENAI_API_KEY"
    )
    caps = BudgetLimits(max_calls=9)
    assert panel(shared=SHARED) == JudgeConfig(
        settings=settings, samples=3, budget_id="c.yaml", caps=caps
    )


def test_every_judge_setting_can_be_configured() -> None:
    given = {
        "provider": "azure", "model": "d", "base_url": "https://a", "api_version": "2024-10-21",
        "api_key_env": "KEY", "combine": "mean", "temperature": 0.5, "max_output_tokens": 99,
        "price": {"input": 1.0, "output": 2.5}, "max_tokens": 10, "max_usd": 0.5,
    }  # fmt: skip
    assert panel(shared=given) == JudgeConfig(
        settings=ModelSettings(
            provider="azure",
            model="d",
            base_url="https://a",
            api_version="2024-10-21",
            key_variable="KEY",
            temperature=0.5,
            output_tokens=99,
            prices=TokenPrices(input_usd=1.0, output_usd=2.5),
        ),
        aggregation="mean",
        budget_id="c.yaml",
        caps=BudgetLimits(max_tokens=10, max_usd=0.5),
    )


def test_evaluator_judge_overrides_only_fields_it_sets() -> None:
    changed = panel({"model": "n", "samples": 5}, SHARED)
    assert (changed.settings.model, changed.settings.effort) == ("n", "low")
    assert (changed.samples, changed.caps) == (5, BudgetLimits(max_calls=9))


def test_other_provider_does_not_inherit_service_settings() -> None:
    changed = panel({"provider": "gemini", "model": "g"}, SHARED)
    settings = ModelSettings(provider="gemini", model="g", key_variable="GEMINI_API_KEY")
    assert changed.settings == settings
    assert (changed.samples, changed.caps) == (3, BudgetLimits(max_calls=9))


@pytest.mark.parametrize("provider", KEY_VARIABLES)
def test_default_key_is_not_sent_to_custom_base_url(provider: str) -> None:
    own = panel({"provider": provider, "model": "m"}).settings
    other = panel({"provider": provider, "model": "m", "base_url": "http://localhost"}).settings
    assert own.key_variable == KEY_VARIABLES[provider]
    assert other.key_variable == ("AZURE_OPENAI_API_KEY" if provider == "azure" else "")


class TestCommandLineModel:
    def test_command_line_model_overrides_config(self) -> None:
        assert panel({"model": "a"}, SHARED, "x/y").settings.model == "x/y"
        assert panel({}, SHARED, "openai/y").settings.model == "openai/y"

    def test_command_line_model_can_name_provider(self) -> None:
        settings = panel(model="anthropic/claude").settings
        assert (settings.provider, settings.model) == ("anthropic", "claude")

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            ("", "`e` needs a judge model"),
            ("gpt", "the judge model 'gpt' of `e` has no provider"),
            ("nobody/gpt", "the judge model 'nobody/gpt' of `e` has no provider"),
        ],
    )
    def test_missing_or_unqualified_model_is_rejected(self, model: str, message: str) -> None:
        with pytest.raises(InputError, match=message) as caught:
            panel(model=model)
        assert caught.value.problems[0].place == PLACE


def test_command_judge_needs_no_provider() -> None:
    settings = panel({"command": ["copilot", "-p", "{prompt}"]}).settings
    assert (settings.provider, settings.command) == ("command", ("copilot", "-p", "{prompt}"))


def test_command_judge_ignores_shared_service_settings() -> None:
    shared = {**SHARED, "base_url": "http://localhost"}
    settings = panel({"command": ["judge"]}, shared).settings
    assert settings == ModelSettings(provider="command", model="", command=("judge",))


def test_provider_judge_ignores_shared_command() -> None:
    settings = panel({"provider": "openai", "model": "m"}, {"command": ["judge"]}).settings
    assert (settings.provider, settings.command) == ("openai", ())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"modle": "m"}, "test: unknown field 'modle'; did you mean 'model'?"),
        ({"speed": 1}, "test: unknown field 'speed'"),
        ({"samples": "many"}, "test: samples: Input should be a valid integer"),
        ({"price": {"input": 1}}, "test: price.output: Field required"),
    ],
)
def test_invalid_fields_of_a_judge_are_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_judge_settings("m", fields, name="test", place=PLACE)
    [problem] = caught.value.problems
    assert (problem.message, problem.place) == (message, PLACE)
