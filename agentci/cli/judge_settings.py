"""The judge settings of callers that have no config."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agentci._util.text.suggest import quote_name, suggest_name
from agentci.errors import InputError
from agentci.evaluators.judge_config import JudgeSettings, SharedJudgeSpec
from agentci.model.values import Place, Problem


def make_judge_settings(
    model: str, fields: Mapping[str, Any], *, name: str, place: Place, folder: str = ""
) -> JudgeSettings:
    """Make the settings of a judge.

    Args:
        model: ``model`` or ``provider/model``; empty if ``fields`` name it.
        fields: as under ``judge`` in a config.
        name: of what gives the fields, for messages.
        folder: as in ``JudgeSettings``.

    Raises:
        InputError: a field is unknown or invalid.
    """
    try:
        shared = SharedJudgeSpec.model_validate(dict(fields))
    except ValidationError as error:
        raise InputError(
            [
                Problem(message=f"{name}: {_format_field_error(each)}", place=place)
                for each in error.errors(include_url=False)
            ]
        ) from None
    budget_id = json.dumps([model, shared.model_dump()], sort_keys=True)
    return JudgeSettings(budget_id=budget_id, folder=folder, shared=shared, model=model)


def _format_field_error(error: ErrorDetails) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] != "extra_forbidden":
        return f"{name}: {error['msg']}"
    meant = suggest_name(name, tuple(SharedJudgeSpec.model_fields))
    return f"unknown field {quote_name(name)}" + (f"; {meant}" if meant else "")
