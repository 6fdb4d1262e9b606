"""Where GitHub would not show all annotations, those on lines of the pull request go first."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.steps import Step, run_step
from tests.github.api.hub import Hub, running_hub
from tests.helpers.recordings import otlp
from tests.helpers.runner import Command, commands_in
from tests.helpers.support import run_agentci

NUMBER: Final = 7
LISTED: Final = "pulls/list-files"
USUAL: Final = [f"e{n}" for n in range(10)]


def write(folder: Path, evaluators: int = 12) -> None:
    """A config of evaluators that all fail, on lines 2, 5, 8 and so on."""
    entries = [f"- name: e{n}\n  type: code\n  path: ev.py\n" for n in range(evaluators)]
    (folder / "agentci.yaml").write_text(f"evaluators:\n{''.join(entries)}traces: t.json\n")
    (folder / "ev.py").write_text("print('{\"score\": 0}')")
    (folder / "t.json").write_text(otlp())


def line_of(number: int) -> int:
    return 2 + 3 * number


def changed(file: str, patch: str | None) -> dict[str, Any]:
    """A file of a pull request; large and binary ones have no patch."""
    urls = {f"{kind}_url": f"https://github.com/{file}" for kind in ("blob", "raw", "contents")}
    counts = {"additions": 1, "deletions": 1, "changes": 2}
    entry = {"sha": "b" * 40, "filename": file, "status": "modified", **counts, **urls}
    return entry if patch is None else {**entry, "patch": patch}


def told(hub: Hub, folder: Path) -> dict[str, str]:
    """What the runner sets for a step of a pull request."""
    event = folder.parent / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": NUMBER}}))
    return {
        **hub.environ,
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
    }


def step(hub: Hub, folder: Path, **inputs: str) -> Step:
    return run_step(folder, told(hub, folder), **inputs)


def names(ran: Step) -> list[str]:
    return [_name(command) for command in commands_in(ran.log)]


def _name(command: Command) -> str:
    return command.properties["title"].partition(":")[0]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running_hub() as hub:
        hub.operations[LISTED] = lambda question: hub.paged(
            question, files if question.path["pull_number"] == NUMBER else []
        )
        files = [
            *(changed(f"src/{n}.py", "@@ -1 +1 @@\n-x\n+y") for n in range(150)),
            changed("agentci.yaml", f"@@ -{line_of(11)} +{line_of(11)},2 @@\n"),
        ]
        yield hub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    write(folder)
    return folder


def test_what_is_on_a_changed_line_goes_before_the_others(hub: Hub, folder: Path) -> None:
    ran = step(hub, folder)
    assert (ran.code, names(ran)) == (1, ["e11", *USUAL[:9]])
    assert "(2 more not shown here)" in commands_in(ran.log)[-1].data
    assert hub.count(LISTED) == 2  # pages, of a hundred files each


def test_no_more_pages_are_asked_for_than_are_needed(hub: Hub, folder: Path) -> None:
    files = [changed("agentci.yaml", None), *(changed(f"{n}", "") for n in range(150))]
    hub.operations[LISTED] = lambda question: hub.paged(question, files)
    assert names(step(hub, folder)) == USUAL
    assert hub.count(LISTED) == 1


def test_nothing_is_asked_where_all_are_shown(hub: Hub, folder: Path) -> None:
    write(folder, evaluators=10)
    assert names(step(hub, folder)) == USUAL
    assert hub.asked == []


class TestTheUsualOrderStays:
    def test_where_there_is_no_pull_request(self, hub: Hub, folder: Path) -> None:
        event = {**told(hub, folder), "GITHUB_EVENT_PATH": ""}
        assert names(run_step(folder, event)) == USUAL
        assert hub.asked == []

    @pytest.mark.parametrize("inputs", [{"offline": "true"}, {"annotations": "none"}], ids=str)
    def test_where_nobody_is_to_be_asked(
        self, hub: Hub, folder: Path, inputs: dict[str, str]
    ) -> None:
        assert names(step(hub, folder, **inputs)) == ([] if "annotations" in inputs else USUAL)
        assert hub.asked == []

    def test_where_the_token_may_not_see_it(self, hub: Hub, folder: Path) -> None:
        hub.denied.add(LISTED)
        ran = step(hub, folder)
        assert (ran.code, names(ran)) == (1, USUAL)
        assert "diff" not in ran.log

    def test_and_a_verbose_run_says_why(self, hub: Hub, folder: Path) -> None:
        hub.denied.add(LISTED)
        ran = run_agentci(["run", "--verbose"], cwd=folder, environ=told(hub, folder))
        assert [_name(command) for command in commands_in(ran.out)] == USUAL
        assert "cannot fetch the pull request's diff: GitHub answered 403" in ran.out
        assert "`permissions: pull-requests: read`" in ran.out

    def test_where_it_changes_none_of_the_files(self, hub: Hub, folder: Path) -> None:
        hub.operations[LISTED] = lambda question: hub.paged(question, [changed("a", "")])
        assert names(step(hub, folder)) == USUAL

    def test_where_there_is_no_token(self, hub: Hub, folder: Path) -> None:
        assert names(step(hub, folder, github_token="")) == USUAL
        assert hub.asked == []
