"""The registry of evaluator types, including types from plugins."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentci.config.entries import find_evaluator_types
from agentci.config.overrides import Overrides
from agentci.config.suite import read_suite
from agentci.config.validate import check_config
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.evaluators.registry import EVAL_FILE_TYPES, EVALUATOR_TYPES
from agentci.runner.suite_files import FileLocator, make_locator
from tests.helpers.support import ROOT, make_services

PACKAGE = """\
from typing import Literal

from pydantic import Field, field_validator

from agentci.evaluators.agentevals.builtin import make_builtin_evaluator
from agentci.evaluators.fields import Entry, Share
from agentci.errors import InputError
from agentci.evaluators.evaluator_type import EvaluatorType


class MoodEntry(Entry):
    type: str
    threshold: Share = 0.5
    mood: str = Field(description="Of whom.")

    @field_validator("mood")
    @classmethod
    def _known(cls, mood: str) -> str:
        if mood != "happy":
            raise ValueError("only a happy mood can be judged")
        return mood


def build(entry, surroundings):
    return make_builtin_evaluator(
        "response_match_score", place=surroundings.place, threshold=entry.threshold
    )


class HastyEntry(MoodEntry):
    mood: str = "happy"
    timeout: Literal[1] = 1


HASTY = EvaluatorType(entry=HastyEntry, build=build)
MOOD = EvaluatorType(entry=MoodEntry, build=build)
NO_TYPE = "mood"
NO_ENTRY = EvaluatorType(entry=dict, build=build)
NO_MODEL = EvaluatorType(entry=MoodEntry(name="a", type="mood", mood="happy"), build=build)
NO_BUILD = EvaluatorType(entry=MoodEntry, build=7)
LOST = EvaluatorType(entry=HastyEntry, build=lambda entry, surroundings: entry.gone)
NONE = EvaluatorType(entry=HastyEntry, build=lambda entry, surroundings: None)


def refuse(entry, surroundings):
    raise InputError.from_message("not today")


SHY = EvaluatorType(entry=HastyEntry, build=refuse)
"""
BROKEN = {"broken": "NO_TYPE", "entry": "NO_ENTRY", "model": "NO_MODEL", "build": "NO_BUILD"}


@pytest.fixture
def _moods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin package that provides evaluators of ``type: mood``."""
    (tmp_path / "agentci_moods.py").write_text(PACKAGE)
    info = tmp_path / "agentci_moods-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agentci-moods\nVersion: 1.0\n")
    works = {"mood": "MOOD", "hasty": "HASTY", "lost": "LOST", "none": "NONE", "shy": "SHY"}
    points = {**works, **BROKEN, "gone": "GONE"}
    lines = [f"{name} = agentci_moods:{each}\n" for name, each in points.items()]
    (info / "entry_points.txt").write_text("".join(["[agentci.evaluator_types]\n", *lines]))
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.fixture
def programs(tmp_path: Path) -> FileLocator:
    """A locator of files and plugin types."""
    services = make_services(tmp_path, {})
    return make_locator(tmp_path, services)


def problems_of(config: bytes, programs: FileLocator) -> list[str]:
    """The problems found in a config."""
    document = read_yaml(config, file="c.yaml")
    return [
        str(each) for each in check_config(document, find_evaluator_types(document, programs))[1]
    ]


def test_eval_file_types_are_not_config_types() -> None:
    assert EVALUATOR_TYPES.keys() & EVAL_FILE_TYPES.keys() == set()


def test_unknown_type_is_not_found(programs: FileLocator) -> None:
    assert programs.type_named("mood") is None


@pytest.mark.usefixtures("_moods")
class TestPluginTypes:
    def test_plugin_type_is_found_by_entry_point(self, programs: FileLocator) -> None:
        assert programs.type_named("mood") is not None

    @pytest.mark.parametrize(
        ("name", "complaint"),
        [
            *((name, "which is not an EvaluatorType") for name in BROKEN),
            ("gone", "which cannot be loaded: AttributeError"),
        ],
    )
    def test_invalid_plugin_type_error_names_package(
        self, name: str, complaint: str, programs: FileLocator
    ) -> None:
        config = f"evaluators:\n- {{name: a, type: mood, mood: happy}}\n- {{name: b, type: {name}}}"
        with pytest.raises(InputError) as refusal:
            read_suite(read_yaml(config.encode(), file="c.yaml"), Overrides(), programs)
        assert str(refusal.value).startswith(
            f"c.yaml:3:19: the package agentci-moods provides {name!r} for agentci.evaluator_types,"
            f" {complaint}"
        )

    @pytest.mark.parametrize(
        ("name", "complaint"),
        [
            ("lost", "AttributeError: 'HastyEntry' object has no attribute 'gone'"),
            ("none", "AttributeError: 'NoneType' object has no attribute 'identity'"),
        ],
    )
    def test_failing_plugin_error_names_package(
        self, name: str, complaint: str, programs: FileLocator
    ) -> None:
        config = f"evaluators: [{{name: a, type: {name}}}]"
        with pytest.raises(InputError) as refusal:
            read_suite(read_yaml(config.encode(), file="c.yaml"), Overrides(), programs)
        assert str(refusal.value) == (
            f"c.yaml:1:14: the type `{name}` of the package agentci-moods failed:"
            f" {complaint} (report this to the authors of the plugin)"
        )

    def test_plugin_can_reject_an_entry(self, programs: FileLocator) -> None:
        document = read_yaml(b"evaluators: [{name: a, type: shy}]", file="c.yaml")
        with pytest.raises(InputError, match=r"^c\.yaml:1:14: not today$"):
            read_suite(document, Overrides(), programs)

    def test_plugin_type_builds_evaluators(self, programs: FileLocator) -> None:
        document = read_yaml(
            b"evaluators: [{name: m, type: mood, mood: happy}]\ndefaults: {threshold: 0.25}",
            file="c.yaml",
        )
        suite = read_suite(document, Overrides(), programs)
        assert [each.identity.criterion for each in suite.evaluators] == ["score >= 0.25"]

    def test_invalid_default_for_plugin_type_is_rejected(self, programs: FileLocator) -> None:
        document = read_yaml(
            b"evaluators: [{name: m, type: hasty}]\ndefaults: {timeout: 5}", file="c.yaml"
        )
        with pytest.raises(InputError) as refusal:
            read_suite(document, Overrides(), programs)
        assert str(refusal.value) == (
            "c.yaml:1:14: `defaults.timeout` is invalid for evaluator 'm': Input should be 1"
        )

    def test_plugin_entries_are_validated_against_schema(self, programs: FileLocator) -> None:
        entries = b"evaluators:\n- {name: a, type: mood}\n- {name: b, type: mood, mood: 7, zap: 1}"
        problems = problems_of(entries, programs)
        assert problems == [
            "c.yaml:2:3: evaluator 'a' has no `mood` (add `mood: ...`)",
            'c.yaml:3:31: `mood` must be a string, not 7 (put it in quotes: "7")',
            "c.yaml:3:34: unknown key 'zap' (known keys: name, type, required, threshold, mood)",
        ]

    def test_plugin_validators_run(self, programs: FileLocator) -> None:
        entries = b"evaluators:\n- {name: a, type: mood, mood: sad}\n- {name: b, type: mood}"
        problems = problems_of(entries, programs)
        assert problems[0] == "c.yaml:2:31: only a happy mood can be judged"
        assert len(problems) == 2


def test_unused_types_are_not_imported() -> None:
    asked = (
        "import sys; from agentci.evaluators.registry import EVALUATOR_TYPES as types;"
        "assert 'grader' in types and len(types) == len([*types]); types['code'];"
        "print(*(each for each in sys.modules if 'openai_eval' in each or 'pytest_agent' in each))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == []
