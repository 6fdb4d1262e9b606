"""A local fake of the Evals API, limited to what graders need."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests._util.http.servers import Answer, Asked


@dataclass(kw_only=True)
class FakeEvals:
    """A fake Evals API; ``score`` computes the score of an item.

    Attributes:
        polls: number of status requests that report a run in progress.
        page: items per page, regardless of the requested limit.
        repeats: whether every page is the first page.
        run, item: fields that override those of a response.
        refusals: the first responses, for any request.
        keeps: whether deleting an eval fails.
        evals: IDs of the existing evals.
        created: bodies of all create requests.
    """

    score: Callable[[Mapping[str, Any]], float] = lambda _: 1.0
    polls: int = 1
    page: int = 100
    repeats: bool = False
    run: Mapping[str, Any] = field(default_factory=dict)
    item: Mapping[str, Any] = field(default_factory=dict)
    refusals: list[Answer] = field(default_factory=list)
    keeps: bool = False
    evals: set[str] = field(default_factory=set)
    created: list[Mapping[str, Any]] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Answer:
        if self.refusals:
            return self.refusals.pop(0)
        path, _, query = asked.path.partition("?")
        answers: dict[tuple[str, str], Callable[[], Answer]] = {
            ("POST", "/v1/evals"): lambda: self._make(asked, "eval 1"),
            ("POST", "/v1/evals/eval%201/runs"): lambda: self._make(asked, "run_1"),
            ("GET", "/v1/evals/eval%201/runs/run_1"): lambda: _said(self._run()),
            ("GET", "/v1/evals/eval%201/runs/run_1/output_items"): lambda: self._page(query),
            ("DELETE", "/v1/evals/eval%201"): self._delete,
        }
        return answers.get((asked.method, path), _missing)()

    def _make(self, asked: Asked, name: str) -> Answer:
        self.created.append(json.loads(asked.body))
        self.evals.add("eval 1")
        return _said({"id": name, "status": "queued"}, 201)

    def _delete(self) -> Answer:
        if self.keeps:
            return _missing()
        self.evals.discard("eval 1")
        return _said({"object": "eval.deleted", "deleted": True})

    def _run(self) -> dict[str, Any]:
        self.polls -= 1
        status = "completed" if self.polls < 0 else "in_progress"
        counts = {"total": len(self._items()), "errored": 0}
        return {"id": "run_1", "status": status, "result_counts": counts, **self.run}

    def _page(self, query: str) -> Answer:
        given = dict(part.split("=") for part in query.split("&"))
        assert given["limit"] == "100"
        # The service guarantees no order.
        items = [self._graded(number) for number in reversed(range(len(self._items())))]
        ids = [item["id"] for item in items]
        start = ids.index(given["after"]) + 1 if "after" in given and not self.repeats else 0
        page = items[start : start + self.page]
        more = start + self.page < len(items)
        return _said({"object": "list", "data": page, "has_more": more})

    def _items(self) -> list[Mapping[str, Any]]:
        content = self.created[1]["data_source"]["source"]["content"]
        return [each["item"] for each in content]

    def _graded(self, number: int) -> dict[str, Any]:
        score = self.score(self._items()[number])
        [criterion] = self.created[0]["testing_criteria"]
        passed = score >= criterion.get("pass_threshold", 1)
        result = {"name": f"{criterion['name']}-1", "score": score, "passed": passed}
        return {
            "id": f"item_{number}",
            "datasource_item_id": number,
            "results": [result],
            **self.item,
        }


def _said(document: object, status: int = 200) -> Answer:
    return Answer(status=status, body=json.dumps(document).encode())


def _missing() -> Answer:
    return _said({"error": {"message": "there is nothing here"}}, 404)
