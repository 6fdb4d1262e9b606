"""Model responses are cached if accepted, dropped if rejected, and logged in both cases."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from agentci._util.workspace import find_workspace
from agentci.errors import EvaluatorError
from agentci.model.judges import AggregateVerdict, AskModel, CacheMode, JudgeConfig
from agentci.model.requests import Compose, ConstantJudgement, Judgement, Response
from agentci.model.values import replace
from agentci.runner.check import execute_request
from agentci.runner.evaluator_calls import ExternalCall
from agentci.runner.response_cache.cache import ContentDigests, ResponseCache
from agentci.runner.response_cache.program_key import Interpreters
from agentci.runner.response_cache.store import ResponseStore
from agentci.runner.services import Services
from tests._util.http.servers import Server, script, serve
from tests.helpers.support import make_services
from tests.judges.bench import QUESTION, Bench, said, scored, settings


@contextmanager
def services_with_cache(folder: Path) -> Iterator[Services]:
    """Services with a judge and the responses cached in the folder."""
    bench = Bench()
    responses = ResponseCache(
        ResponseStore(folder / "cache"),
        ContentDigests(folder),
        Interpreters(""),
        workspace=find_workspace(folder, root=folder),
        repository=str(folder),
    )
    services = make_services(folder, {})
    yield replace(
        services, judges={"": bench.judge}, budgets={"": bench.budget}, cached_responses=responses
    )
    assert responses.close() == ""


def asking(server: Server, replay: CacheMode = "first") -> AskModel:
    return AskModel(
        prompt=QUESTION, judge=JudgeConfig(settings=settings(server.url), replay=replay)
    )


def make_reader(*, rejects: float = -1) -> Callable[[Response], Judgement]:
    """A reader that rejects one score."""

    def read(response: Response) -> Judgement:
        assert isinstance(response, AggregateVerdict)
        if response.value == rejects:
            raise EvaluatorError("rejected")
        return Judgement(score=float(response.value), passed=True)

    return read


def evaluate(folder: Path, request: AskModel, **others: float) -> tuple[float | None, bool]:
    with services_with_cache(folder) as services:
        judgement, cached = execute_request(
            request, [], name="j", read=make_reader(**others), services=services
        )
        return judgement.score, cached


def test_rejected_response_is_not_cached(tmp_path: Path) -> None:
    with serve(script(scored(0.1), scored(0.9))) as server:
        with pytest.raises(EvaluatorError, match="rejected"):
            evaluate(tmp_path, asking(server), rejects=0.1)
        assert evaluate(tmp_path, asking(server)) == (0.9, False)


def test_rejected_cached_response_is_requested_again(tmp_path: Path) -> None:
    with serve(script(scored(0.1), scored(0.9))) as server:
        assert evaluate(tmp_path, asking(server)) == (0.1, False)
        assert evaluate(tmp_path, asking(server), rejects=0.1) == (0.9, False)
        assert evaluate(tmp_path, asking(server)) == (0.9, True)


def test_rejected_response_stays_cached_in_replay_only_mode(tmp_path: Path) -> None:
    with serve(script(scored(0.1))) as server:
        evaluate(tmp_path, asking(server))
        with pytest.raises(EvaluatorError, match="rejected"):
            evaluate(tmp_path, asking(server, "only"), rejects=0.1)
        assert evaluate(tmp_path, asking(server, "only")) == (0.1, True)


def test_judge_detail_of_evaluator_is_not_overwritten(tmp_path: Path) -> None:
    def read(_: Response) -> Judgement:
        return Judgement(score=1, passed=True, details={"judge": "mine"})

    with serve(script(scored(1))) as server, services_with_cache(tmp_path) as services:
        judgement, _ = execute_request(asking(server), [], name="j", read=read, services=services)
    assert judgement.details == {"judge": "mine"}


def test_only_accepted_cached_responses_count_as_saved(tmp_path: Path) -> None:
    with serve(script(scored(0.1, prompt_tokens=7, completion_tokens=3), scored(0.9))) as server:
        evaluate(tmp_path, asking(server))
        with services_with_cache(tmp_path) as services:
            for rejected in (-1, 0.1):
                execute_request(
                    asking(server),
                    [],
                    name="j",
                    read=make_reader(rejects=rejected),
                    services=services,
                )
            saved = services.budgets[""].saved
    assert (saved.calls, saved.tokens) == (1, 10)


def test_failed_composition_caches_no_part(tmp_path: Path) -> None:
    def fail(_: tuple[Response, ...]) -> ConstantJudgement:
        raise EvaluatorError("off protocol")

    with serve(script(scored(0.1), scored(0.9))) as server:
        request = Compose(parts=(("a", asking(server)),), then=fail)
        with (
            services_with_cache(tmp_path) as services,
            pytest.raises(EvaluatorError, match="off protocol"),
        ):
            execute_request(request, [], name="j", read=make_reader(), services=services)
        assert evaluate(tmp_path, asking(server)) == (0.9, False)


def collect_calls(folder: Path, request: AskModel, **others: float) -> list[ExternalCall]:
    """The external calls of a request, accepted or not."""
    calls: list[ExternalCall] = []
    with services_with_cache(folder) as services, suppress(EvaluatorError):
        execute_request(request, calls, name="j", read=make_reader(**others), services=services)
    return calls


def test_model_call_is_logged_with_its_responses(tmp_path: Path) -> None:
    with serve(script(scored(0.1))) as server:
        first, again = (collect_calls(tmp_path, asking(server)) for _ in range(2))
    for [call], is_cached in ((first, False), (again, True)):
        assert (call.name, call.request, call.cached) == ("j", asking(server), is_cached)
        assert [json.loads(each.text)["score"] for each in call.model_responses] == [0.1]


def test_new_response_replaces_rejected_one_in_log(tmp_path: Path) -> None:
    with serve(script(scored(0.1), scored(0.9))) as server:
        evaluate(tmp_path, asking(server))
        [call] = collect_calls(tmp_path, asking(server), rejects=0.1)
    assert (
        [json.loads(each.text)["score"] for each in call.model_responses],
        call.cached,
    ) == (
        [0.9],
        False,
    )


def test_rejected_response_is_logged_in_replay_only_mode(tmp_path: Path) -> None:
    with serve(script(scored(0.1))) as server:
        evaluate(tmp_path, asking(server))
        [call] = collect_calls(tmp_path, asking(server, "only"), rejects=0.1)
    assert (
        [json.loads(each.text)["score"] for each in call.model_responses],
        call.cached,
    ) == (
        [0.1],
        True,
    )


def test_failed_call_is_logged_with_its_error(tmp_path: Path) -> None:
    with serve(script(said("no"))) as server:
        [call] = collect_calls(tmp_path, asking(server))
    assert (call.response, [each.text for each in call.model_responses]) == (
        None,
        ["no", "no"],
    )
    assert "contains no verdict" in call.error
