"""If there are more annotations than GitHub shows, those on changed lines come first."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests._util.http.servers import Answer
from tests.e2e.steps import Step, run_step
from tests.github.api.hub import Hub, changed_file, running_hub
from tests.helpers.recordings import otlp
from tests.helpers.runner import Command, commands_in
from tests.helpers.support import run_agentci

NUMBER: Final = 7
LISTED: Final = "pulls/list-files"
CONFIG_ORDER: Final = [f"e{n}" for n in range(10)]


def write(folder: Path, evaluators: int = 12) -> None:
    """Write a config of failing evaluators on lines 2, 5, 8 and so on."""
    entries = [f"- name: e{n}\n  type: code\n  path: ev.py\n" for n in range(evaluators)]
    (folder / "agentci.yaml").write_text(f"evaluators:\n{''.join(entries)}traces: t.json\n")
    (folder / "ev.py").write_text("print('{\"score\": 0}')")
    (folder / "t.json").write_text(otlp())


def line_of(number: int) -> int:
    return 2 + 3 * number


def event_variables(hub: Hub, folder: Path) -> dict[str, str]:
    """The variables that the runner sets for a step of a pull request."""
    event = folder.parent / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": NUMBER}}))
    return {
        **hub.environ,
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
    }


def run(hub: Hub, folder: Path, **inputs: str) -> Step:
    return run_step(folder, event_variables(hub, folder), **inputs)


def names(ran: Step) -> list[str]:
    return [_name(command) for command in commands_in(ran.log)]


def _name(command: Command) -> str:
    """The evaluator of `Question? > e0 failed`."""
    return command.properties["title"].rpartition(" > ")[2].removesuffix(" failed")


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running_hub() as hub:
        hub.operations[LISTED] = lambda request: hub.paged(
            request, files if request.path["pull_number"] == NUMBER else []
        )
        files = [
            *(changed_file(f"src/{n}.py", "@@ -1 +1 @@\n-x\n+y") for n in range(150)),
            changed_file("agentci.yaml", f"@@ -{line_of(11)} +{line_of(11)},2 @@\n"),
        ]
        yield hub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    write(folder)
    return folder


def test_annotations_on_changed_lines_come_first(hub: Hub, folder: Path) -> None:
    ran = run(hub, folder)
    assert (ran.code, names(ran)) == (1, ["e11", *CONFIG_ORDER[:9]])
    assert "(2 more not shown here)" in commands_in(ran.log)[-1].data
    assert hub.count(LISTED) == 2  # pages of 100 files each


def test_diff_pages_after_last_annotated_file_are_not_fetched(hub: Hub, folder: Path) -> None:
    files = [
        *(changed_file(name, None) for name in ("agentci.yaml", "t.json")),
        *(changed_file(f"{n}", "") for n in range(150)),
    ]
    hub.operations[LISTED] = lambda request: hub.paged(request, files)
    assert names(run(hub, folder)) == CONFIG_ORDER
    assert hub.count(LISTED) == 1


class TestCaseInDiff:
    def test_failures_are_annotated_on_changed_trace(self, hub: Hub, folder: Path) -> None:
        files = [changed_file("t.json", "@@ -3,2 +4,2 @@\n-a\n+b\n c")]
        hub.operations[LISTED] = lambda request: hub.paged(request, files)
        [command] = commands_in(run(hub, folder).log)
        place = (command.properties["file"], command.properties["line"])
        assert (command.name, *place) == ("error", "t.json", "4")
        assert command.properties["title"].endswith(": e0, e1, e2, … and 9 more did not pass")
        assert command.data.startswith("e0: score 0, threshold 0.5")

    def test_diff_is_not_fetched_for_passed_checks(self, hub: Hub, folder: Path) -> None:
        (folder / "ev.py").write_text("print('{\"score\": 1}')")
        assert run(hub, folder).code == 0
        assert hub.asked == []


class TestConfigOrder:
    def test_event_without_pull_request_keeps_config_order(self, hub: Hub, folder: Path) -> None:
        event = {**event_variables(hub, folder), "GITHUB_EVENT_PATH": ""}
        assert names(run_step(folder, event)) == CONFIG_ORDER
        assert hub.asked == []

    @pytest.mark.parametrize("inputs", [{"offline": "true"}, {"annotations": "none"}], ids=str)
    def test_offline_or_disabled_annotations_fetch_no_diff(
        self, hub: Hub, folder: Path, inputs: dict[str, str]
    ) -> None:
        assert names(run(hub, folder, **inputs)) == (
            [] if "annotations" in inputs else CONFIG_ORDER
        )
        assert hub.asked == []

    def test_diff_access_denied_keeps_config_order(self, hub: Hub, folder: Path) -> None:
        hub.denied.add(LISTED)
        ran = run(hub, folder)
        assert (ran.code, names(ran)) == (1, CONFIG_ORDER)
        assert "diff" not in ran.log

    def test_outage_keeps_config_order_and_is_not_waited_for(self, hub: Hub, folder: Path) -> None:
        hub.faults[LISTED] = [Answer(status=502)] * 9
        ran = run(hub, folder)
        assert (ran.code, names(ran), hub.count(LISTED)) == (1, CONFIG_ORDER, 1)
        assert "retrying" not in ran.log

    def test_verbose_run_reports_denied_diff_access(self, hub: Hub, folder: Path) -> None:
        hub.denied.add(LISTED)
        ran = run_agentci(["run", "--verbose"], cwd=folder, environ=event_variables(hub, folder))
        assert [_name(command) for command in commands_in(ran.out)] == CONFIG_ORDER
        assert "cannot fetch the pull request's diff: GitHub answered 403" in ran.out
        assert "`permissions: pull-requests: read`" in ran.out

    def test_unrelated_diff_keeps_config_order(self, hub: Hub, folder: Path) -> None:
        hub.operations[LISTED] = lambda request: hub.paged(request, [changed_file("a", "")])
        assert names(run(hub, folder)) == CONFIG_ORDER

    def test_missing_token_keeps_config_order(self, hub: Hub, folder: Path) -> None:
        assert names(run(hub, folder, github_token="")) == CONFIG_ORDER
        assert hub.asked == []
