"""Complete responses of the Evals API; test_evals_api_types.py checks them for their types."""

from typing import Any

EVAL, RUN = "eval_1", "run_1"
NO_ERROR = {"code": "", "message": ""}
DELETED = {"object": "eval.deleted", "deleted": True, "eval_id": EVAL}


def an_eval(criterion: object, item_schema: object) -> dict[str, Any]:
    return {
        "id": EVAL,
        "object": "eval",
        "created_at": 1,
        "name": "agentci g",
        "data_source_config": {"type": "custom", "schema": {"item": item_schema}},
        "testing_criteria": [criterion],
        "metadata": {},
    }


def a_run(status: str, items: int = 1, **others: object) -> dict[str, Any]:
    """A run, without the counts of passed and failed ``items``."""
    return {
        "id": RUN,
        "object": "eval.run",
        "created_at": 1,
        "eval_id": EVAL,
        "name": "agentci g",
        "model": "",
        "status": status,
        "error": NO_ERROR,
        "report_url": "https://r.example/run_1",
        "data_source": {"type": "jsonl", "source": {"type": "file_id", "id": "file_1"}},
        "per_model_usage": [],
        "per_testing_criteria_results": [],
        "result_counts": {"total": items, "passed": 0, "failed": 0, "errored": 0},
        "metadata": None,
        **others,
    }


def an_item(number: int, score: float, *, passed: bool, **others: object) -> dict[str, Any]:
    """The result of one item."""
    usage = dict.fromkeys(
        ("total_tokens", "prompt_tokens", "completion_tokens", "cached_tokens"), 0
    )
    return {
        "id": f"item_{number}",
        "object": "eval.run.output_item",
        "created_at": 1,
        "eval_id": EVAL,
        "run_id": RUN,
        "status": "pass" if passed else "fail",
        "datasource_item_id": number,
        "datasource_item": {"actual_response": f"answer {number}"},
        "results": [{"name": "g-1", "score": score, "passed": passed, "sample": None, **others}],
        "sample": {
            "error": NO_ERROR,
            "finish_reason": "",
            "input": [],
            "output": [],
            "max_completion_tokens": 0,
            "model": "",
            "seed": 0,
            "temperature": 0,
            "top_p": 0,
            "usage": usage,
        },
    }


def a_page(*items: object, more: bool = False) -> dict[str, Any]:
    return {"object": "list", "data": [*items], "has_more": more}
