"""Replies of models are kept where they were of use, and dropped where they were not."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from agentci.errors import EvaluatorError
from agentci.model.judgement import Judgement
from agentci.model.judges import AggregateVerdict, AskModel, CacheMode, JudgeConfig
from agentci.model.requests import Compose, ConstantJudgement, Response
from agentci.model.values import replace
from agentci.runner.execute import execute_request
from agentci.runner.response_cache.cache import ResponseCache
from agentci.runner.response_cache.content_digests import ContentDigests
from agentci.runner.response_cache.program_key import Interpreters
from agentci.runner.response_cache.store import ResponseStore
from agentci.runner.services import Services
from agentci.runner.transcripts import ExternalCall
from tests._util.http.servers import Server, script, serve
from tests.helpers.support import make_services
from tests.judges.bench import QUESTION, Bench, said, scored, settings


@contextmanager
def world_with(folder: Path) -> Iterator[Services]:
    """A services with a judge, and what was replied in earlier ones of the folder."""
    bench = Bench()
    replies = ResponseCache(
        ResponseStore(folder / "cache"), ContentDigests(), Interpreters(""), root=folder
    )
    services = make_services(folder, {})
    yield replace(
        services, judges={"": bench.judge}, budgets={"": bench.budget}, cached_responses=replies
    )
    assert replies.close() == ""


def asking(server: Server, replay: CacheMode = "first") -> AskModel:
    return AskModel(
        prompt=QUESTION, judge=JudgeConfig(settings=settings(server.url), replay=replay)
    )


def reading(*, refuses: float = -1) -> Callable[[Response], Judgement]:
    """Reads a ruling, and refuses one score."""

    def read(response: Response) -> Judgement:
        assert isinstance(response, AggregateVerdict)
        if response.value == refuses:
            raise EvaluatorError("refused")
        return Judgement(score=float(response.value), passed=True)

    return read


def judged(folder: Path, request: AskModel, **others: float) -> tuple[float | None, bool]:
    with world_with(folder) as services:
        judgement, cached = execute_request(
            request, [], name="j", read=reading(**others), services=services
        )
        return judgement.score, cached


def test_what_is_refused_is_not_kept(tmp_path: Path) -> None:
    with serve(script(scored(0.1), scored(0.9))) as server:
        with pytest.raises(EvaluatorError, match="refused"):
            judged(tmp_path, asking(server), refuses=0.1)
        assert judged(tmp_path, asking(server)) == (0.9, False)


def test_what_is_found_and_refused_is_asked_for_anew(tmp_path: Path) -> None:
    with serve(script(scored(0.1), scored(0.9))) as server:
        assert judged(tmp_path, asking(server)) == (0.1, False)
        assert judged(tmp_path, asking(server), refuses=0.1) == (0.9, False)
        assert judged(tmp_path, asking(server)) == (0.9, True)


def test_what_nobody_can_replace_stays(tmp_path: Path) -> None:
    with serve(script(scored(0.1))) as server:
        judged(tmp_path, asking(server))
        with pytest.raises(EvaluatorError, match="refused"):
            judged(tmp_path, asking(server, "only"), refuses=0.1)
        assert judged(tmp_path, asking(server, "only")) == (0.1, True)


def test_what_an_evaluator_tells_of_its_judge_goes_before_ours(tmp_path: Path) -> None:
    def read(_: Response) -> Judgement:
        return Judgement(score=1, passed=True, details={"judge": "mine"})

    with serve(script(scored(1))) as server, world_with(tmp_path) as services:
        judgement, _ = execute_request(asking(server), [], name="j", read=read, services=services)
    assert judgement.details == {"judge": "mine"}


def test_a_reply_counts_as_saved_once_it_was_of_use(tmp_path: Path) -> None:
    with serve(script(scored(0.1, prompt_tokens=7, completion_tokens=3), scored(0.9))) as server:
        judged(tmp_path, asking(server))
        with world_with(tmp_path) as services:
            for refused in (-1, 0.1):
                execute_request(
                    asking(server), [], name="j", read=reading(refuses=refused), services=services
                )
            saved = services.budgets[""].saved
    assert (saved.calls, saved.tokens) == (1, 10)


def test_a_part_that_fails_keeps_none_of_a_composition(tmp_path: Path) -> None:
    def fail(_: tuple[Response, ...]) -> ConstantJudgement:
        raise EvaluatorError("off protocol")

    with serve(script(scored(0.1), scored(0.9))) as server:
        request = Compose(parts=(("a", asking(server)),), then=fail)
        with world_with(tmp_path) as services, pytest.raises(EvaluatorError, match="off protocol"):
            execute_request(request, [], name="j", read=reading(), services=services)
        assert judged(tmp_path, asking(server)) == (0.9, False)


def dealt(folder: Path, request: AskModel, **others: float) -> list[ExternalCall]:
    """What was asked and came back, whether it was of use or not."""
    dealings: list[ExternalCall] = []
    with world_with(folder) as services, suppress(EvaluatorError):
        execute_request(request, dealings, name="j", read=reading(**others), services=services)
    return dealings


def test_what_was_asked_and_came_back_is_taken_down(tmp_path: Path) -> None:
    with serve(script(scored(0.1))) as server:
        first, again = (dealt(tmp_path, asking(server)) for _ in range(2))
    for [dealing], is_cached in ((first, False), (again, True)):
        assert (dealing.name, dealing.request, dealing.cached) == ("j", asking(server), is_cached)
        assert [json.loads(each.text)["score"] for each in dealing.model_responses] == [0.1]


def test_what_is_asked_for_anew_takes_the_place_of_what_was_found(tmp_path: Path) -> None:
    with serve(script(scored(0.1), scored(0.9))) as server:
        judged(tmp_path, asking(server))
        [dealing] = dealt(tmp_path, asking(server), refuses=0.1)
    assert (
        [json.loads(each.text)["score"] for each in dealing.model_responses],
        dealing.cached,
    ) == (
        [0.9],
        False,
    )


def test_what_nobody_can_replace_is_taken_down_as_it_was_found(tmp_path: Path) -> None:
    with serve(script(scored(0.1))) as server:
        judged(tmp_path, asking(server))
        [dealing] = dealt(tmp_path, asking(server, "only"), refuses=0.1)
    assert (
        [json.loads(each.text)["score"] for each in dealing.model_responses],
        dealing.cached,
    ) == (
        [0.1],
        True,
    )


def test_what_failed_is_taken_down_with_the_reason(tmp_path: Path) -> None:
    with serve(script(said("no"))) as server:
        [dealing] = dealt(tmp_path, asking(server))
    assert (dealing.response, [each.text for each in dealing.model_responses]) == (
        None,
        ["no", "no"],
    )
    assert "contains no verdict" in dealing.error
