"""Eval files in the manner of AgentV's examples, with recorded runs and everything they name."""

import json
from pathlib import Path
from typing import Any, Final

GRADE: Final = json.dumps({"score": 0.9, "reasoning": "so", "assertions": []})
CHECKS: Final = json.dumps(
    {
        "checks": [
            {"id": "a", "satisfied": True, "reasoning": "r"},
            {"id": "b", "satisfied": False, "reasoning": "r"},
        ],
        "overall_reasoning": "r",
    }
)
TEXT_CHECKS: Final = CHECKS.replace('"a"', '"rubric-1"').replace('"b"', '"rubric-2"')
RANGES: Final = json.dumps(
    {
        "checks": [
            {"id": "a", "score": 6, "reasoning": "r"},
            {"id": "b", "score": 9, "reasoning": "r"},
        ],
        "overall_reasoning": "r",
    }
)


def make_target(name: str, grader: str) -> dict[str, str]:
    """A target that answers with the recorded output of the case."""
    command = "cp recorded/{EVAL_ID}.json {OUTPUT_FILE}"
    return {"name": name, "provider": "cli", "command": command, "grader_target": grader}


def make_grader(name: str, response: str) -> dict[str, str]:
    """A model that always answers with ``response``."""
    return {"name": name, "provider": "mock", "response": response}


TARGETS: Final[dict[str, list[dict[str, str]]]] = {
    "targets": [
        make_target("default", "fixed"),
        make_target("graded", "checks"),
        make_target("rated", "texts"),
        make_target("ranged", "ranges"),
        make_grader("fixed", GRADE),
        make_grader("checks", CHECKS),
        make_grader("texts", TEXT_CHECKS),
        make_grader("ranges", RANGES),
    ]
}


def call(tool: str, duration: float | None = None, **given: Any) -> dict[str, Any]:
    return {"tool": tool, "input": given, **({"duration_ms": duration} if duration else {})}


def run_of(answer: str, *calls: dict[str, Any], **metrics: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer, "tool_calls": [*calls]}
    if not calls:
        del message["tool_calls"]
    return {"output_messages": [message], **metrics}


METRICS: Final = {
    "token_usage": {"input": 100, "output": 50},
    "cost_usd": 0.02,
    "duration_ms": 900,
}
RUNS: Final = {
    "greets": run_of("Hello, Ada!"),
    "refuses": run_of("I cannot help."),
    "gives-json": run_of('{"name": "Ada", "total": 10.4, "day": "2026-03-05", "lines": [1, 2]}'),
    "gives-fenced-json": run_of('```json\n{"name": "Eve", "total": 10}\n```'),
    "searches": run_of(
        "Found it.", call("search", 20, query="x", page=1), call("open", 70, id=3), **METRICS
    ),
    "searches-twice": run_of("Done", call("search", query="y"), call("search", query="x")),
    "uses-skill": run_of("Done", call("Skill", skill="csv-tools"), call("bash", command="ls")),
    "reads-skill": run_of("Done", call("Read", file_path="/w/skills/csv-tools/SKILL.md")),
}
# Called in the runs "searches" and "searches-twice".
SEARCH, OPEN = {"tool": "search", "args": {"query": "x"}}, {"tool": "open"}
FIELDS: Final = [
    {"path": "name", "match": "exact"},
    {"path": "total", "match": "numeric_tolerance", "tolerance": 0.05, "relative": True},
    {"path": "day", "match": "date", "required": False},
    {"path": "lines[1]", "match": "exact", "weight": 2},
]
PYTHON_JUDGE: Final = """import json, sys
given = json.load(sys.stdin)
text = given["output"] or ""
calls = len([c for m in given["messages"] for c in m.get("tool_calls") or []])
print(json.dumps({
    "score": min(1, (len(text) % 10 + calls) / 10),
    "assertions": [{"text": "long", "passed": len(text) > 5}],
    "details": {"keys": sorted(given)},
}))
"""
AGGREGATOR: Final = """import json, sys
results = json.load(sys.stdin)["results"]
failed = [a for each in results.values() for a in each["assertions"] if not a["passed"]]
print(json.dumps({"score": 0.2 if failed else 0.9, "verdict": "fail" if failed else "pass"}))
"""
# What a program reads, returned as details.
ECHO: Final = """import json, sys
print(json.dumps({"score": 1, "details": {"given": json.load(sys.stdin)}}))
"""
ECHOES: Final[dict[str, Any]] = {
    "type": "code-grader", "name": "echo", "command": ["python3", "echo.py"], "limit": 3,
}  # fmt: skip
QUESTIONS: Final[dict[str, Any]] = {
    "greets": "Hi!",
    "refuses": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Why?"}],
    "gives-json": {"role": "user", "content": {"wanted": "json"}},
    "gives-fenced-json": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "tool", "content": "c"},
        {"role": "system", "content": "d"},
        {"role": "user", "content": "e"},
    ],
    "searches": [
        {
            "role": "user",
            "content": [
                {"type": "text", "value": "Read this: "},
                {"type": "file", "value": "notes.md"},
            ],
        }
    ],
    "reads-skill": [
        {"role": "system", "content": "One"},
        {"role": "system", "content": [{"type": "file", "value": "/notes.md"}]},
        {"role": "user", "content": "Two"},
    ],
}


def tests_with(**keys: Any) -> list[dict[str, Any]]:
    """A case with the same keys for each run."""
    return [{"id": case_id, "criteria": "c", "input": "q", **keys} for case_id in RUNS]


ASSERTIONS: Final[dict[str, list[Any]]] = {
    "contains": [{"type": "contains", "value": "Hello"}],
    "icontains": [{"type": "icontains", "value": "hello"}],
    "contains-any": [{"type": "contains-any", "value": ["Done", "Found"]}],
    "contains-all": [{"type": "contains-all", "value": ["Hello", "Ada"]}],
    "icontains-any": [{"type": "icontains-any", "value": ["DONE", "FOUND"]}],
    "icontains-all": [{"type": "icontains-all", "value": ["hello", "ADA"]}],
    "starts-with": [{"type": "starts-with", "value": "Hello"}],
    "ends-with": [{"type": "ends-with", "value": "."}],
    "equals": [{"type": "equals", "value": "Done"}],
    "regex": [{"type": "regex", "value": "^[A-Z]\\w+\\b"}],
    "regex-flags": [{"type": "regex", "value": "ada", "flags": "i"}],
    "is-json": [{"type": "is-json"}],
    "negated": [{"type": "contains", "value": "Hello", "negate": True}],
    "weights": [
        {"type": "contains", "value": "Done", "weight": 3},
        {"type": "contains", "value": "x", "weight": 1},
    ],
    "zero-weight": [
        {"type": "contains", "value": "Done"},
        {"type": "contains", "value": "x", "weight": 0},
    ],
    "required": [
        {"type": "contains", "value": "Done", "required": True},
        {"type": "regex", "value": "."},
        {"type": "regex", "value": "\\w"},
        {"type": "regex", "value": "^."},
        {"type": "regex", "value": "\\S"},
    ],
    "min-score": [
        {"type": "llm-grader", "prompt": "Is it kind?", "required": True, "min_score": 0.95}
    ],
    "any-order": [
        {"type": "tool-trajectory", "mode": "any_order", "minimums": {"search": 2, "open": 1}}
    ],
    "in-order": [{"type": "tool-trajectory", "mode": "in_order", "expected": [SEARCH, OPEN]}],
    "exact": [{"type": "tool-trajectory", "mode": "exact", "expected": [SEARCH, OPEN]}],
    "superset": [
        {
            "type": "tool-trajectory",
            "mode": "superset",
            "args_match": "superset",
            "expected": [OPEN, SEARCH],
        }
    ],
    "subset": [
        {
            "type": "tool-trajectory",
            "mode": "subset",
            "args_match": "ignore",
            "expected": [SEARCH, OPEN],
        }
    ],
    "args-by-path": [
        {
            "type": "tool-trajectory",
            "mode": "in_order",
            "expected": [{**SEARCH, "args_match": ["query"]}],
        }
    ],
    "durations": [
        {
            "type": "tool-trajectory",
            "mode": "in_order",
            "args_match": "ignore",
            "expected": [{**SEARCH, "max_duration_ms": 30}, {**OPEN, "max_duration_ms": 30}],
        }
    ],
    "field-accuracy": [{"type": "field-accuracy", "fields": FIELDS}],
    "all-fields": [
        {"type": "field-accuracy", "fields": FIELDS[:2], "aggregation": "all_or_nothing"}
    ],
    "cost": [{"type": "cost", "budget": 0.01}],
    "token-usage": [{"type": "token-usage", "max_total": 200, "max_output": 40}],
    "execution-metrics": [
        {"type": "execution-metrics", "max_tool_calls": 1, "max_llm_calls": 1, "max_tokens": 500}
    ],
    "exploration": [
        {
            "type": "execution-metrics",
            "target_exploration_ratio": 0.5,
            "exploration_tolerance": 0.3,
        }
    ],
    "skill-trigger": [{"type": "skill-trigger", "skill": "csv-tools"}],
    "no-skill": [{"type": "skill-trigger", "skill": "csv-tools", "should_trigger": False}],
    "llm-grader": [{"type": "llm-grader", "prompt": "Is it kind?"}],
    "rubrics": [
        {
            "type": "rubrics",
            "name": "r",
            "criteria": [{"id": "a", "outcome": "A", "weight": 3}, {"id": "b", "outcome": "B"}],
        }
    ],
    "code-grader": [{"type": "code-grader", "name": "code", "command": ["python3", "judge.py"]}],
    "code-grader-line": [{"type": "code-grader", "name": "c", "command": "python3 judge.py"}],
    "composite": [
        {
            "type": "composite",
            "name": "all",
            "assertions": [
                {"name": "one", "type": "contains", "value": "Done"},
                {"name": "two", "type": "code-grader", "command": ["python3", "judge.py"]},
            ],
            "aggregator": {"type": "weighted_average", "weights": {"one": 0.3, "two": 0.7}},
        }
    ],
    "composite-threshold": [
        {
            "type": "composite",
            "name": "most",
            "assertions": [
                {"name": "one", "type": "contains", "value": "Done"},
                {"name": "two", "type": "regex", "value": "."},
            ],
            "aggregator": {"type": "threshold", "threshold": 0.5},
        }
    ],
    "texts": ["Is kind.", "Is short."],
    "not-json": [{"type": "is-json", "negate": True, "weight": 2}, {"type": "regex", "value": "."}],
    "exact-arguments": [
        {
            "type": "tool-trajectory",
            "mode": "in_order",
            "expected": [{"tool": "search", "args": {"query": "x", "page": 1}}],
        }
    ],
    "ignored-arguments": [
        {
            "type": "tool-trajectory",
            "mode": "exact",
            "args_match": "ignore",
            "expected": [{**SEARCH}, {"tool": "search"}],
        }
    ],
    "nothing-expected": [{"type": "tool-trajectory", "mode": "superset", "expected": []}],
    "nested-composite": [
        {
            "type": "composite",
            "name": "outer",
            "assertions": [
                {
                    "name": "inner",
                    "type": "composite",
                    "assertions": [
                        {"name": "one", "type": "contains", "value": "Done"},
                        {"name": "two", "type": "is-json"},
                    ],
                    "aggregator": {"type": "weighted_average"},
                },
                {"name": "three", "type": "regex", "value": "D"},
            ],
            "aggregator": {"type": "weighted_average", "weights": {"inner": 3}},
        }
    ],
    "composite-program": [
        {
            "type": "composite",
            "name": "all",
            "assertions": [{"name": "one", "type": "contains", "value": "Done"}],
            "aggregator": {"type": "code-grader", "path": "python3 aggregate.py"},
        }
    ],
    "numeric-required": [
        {"type": "code-grader", "name": "c", "command": ["python3", "judge.py"], "required": 0.3}
    ],
    "negated-grader": [{"type": "llm-grader", "prompt": "Is it rude?", "negate": True}],
    "regex-lines": [{"type": "regex", "value": '^\\{\\s*"name"', "flags": "ims"}],
    "minimum-of-one-tool": [
        {"type": "tool-trajectory", "mode": "any_order", "minimums": {"search": 1, "bash": 0}}
    ],
    "superset-of-arguments": [
        {
            "type": "tool-trajectory",
            "mode": "exact",
            "args_match": "superset",
            "expected": [{"tool": "search", "args": {"query": "x"}}, OPEN],
        }
    ],
    "composite-grader": [
        {
            "type": "composite",
            "name": "graded",
            "assertions": [
                {"name": "one", "type": "contains", "value": "Done"},
                {"name": "two", "type": "llm-grader", "prompt": "Is it kind?"},
            ],
            "aggregator": {"type": "llm-grader", "prompt": "Weigh {{EVALUATOR_RESULTS_JSON}}"},
        }
    ],
    "negated-composite": [
        {
            "type": "composite",
            "name": "none",
            "negate": True,
            "assertions": [
                {"name": "one", "type": "contains", "value": "Done"},
                {"name": "two", "type": "is-json"},
            ],
            "aggregator": {"type": "weighted_average"},
        }
    ],
    "optional-rubric": [
        {
            "type": "rubrics",
            "name": "r",
            "criteria": [
                {"id": "a", "outcome": "A"},
                {"id": "b", "outcome": "B", "required": False},
            ],
        }
    ],
    "rubric-ranges": [
        {
            "type": "rubrics",
            "name": "r",
            "criteria": [
                {"id": "a", "outcome": "A", "score_ranges": {"0": "bad", "5": "fair", "9": "good"}},
                {
                    "id": "b",
                    "weight": 2,
                    "min_score": 0.4,
                    "score_ranges": [
                        {"score_range": [0, 4], "outcome": "bad"},
                        {"score_range": [5, 10], "outcome": "good"},
                    ],
                },
            ],
        }
    ],
    "payload": [ECHOES],
    "several": [
        {"type": "contains", "value": "Done"},
        {"type": "is-json"},
        {"type": "skill-trigger", "skill": "csv-tools"},
    ],
}
EXPECTED: Final = {"name": "Ada", "total": 10, "day": "05-MAR-2026", "lines": [1, 2]}
# Other parts of a file that matter for these assertions.
FILES: Final[dict[str, dict[str, Any]]] = {
    "rubrics": {"execution": {"target": "graded"}},
    "optional-rubric": {"execution": {"target": "graded"}},
    "rubric-ranges": {"execution": {"target": "ranged"}},
    "payload": {
        "wire": "v4",
        "tests": [
            {**each, "input": QUESTIONS.get(each["id"], "q"), "expected_output": EXPECTED}
            for each in tests_with(metadata={"a_key": 1})
        ],
    },
    "cases-elsewhere": {
        "tests": "./more/cases.yaml",
        "assertions": [{"type": "contains", "value": "Done"}],
    },
    "cases-in-lines": {"tests": "./more/cases.jsonl"},
    "case-among-paths": {
        "tests": ["file://more/*.part.yaml"],
        "assertions": [{"type": "regex", "value": "o"}],
    },
    "template": {"assertions": [{"include": "polite"}, {"type": "regex", "value": "e"}]},
    "file-and-case": {
        "assertions": [{"type": "contains", "value": "Done"}],
        "tests": tests_with(assertions=[{"type": "is-json", "weight": 3}]),
    },
    "case-rubrics": {
        "execution": {"target": "rated"},
        "tests": tests_with(rubrics=["Is kind.", {"outcome": "Is short.", "required": False}]),
    },
    "input-files": {
        "wire": "v4",
        "input_files": ["notes.md"],
        "assertions": [ECHOES, {"type": "contains", "value": "Done"}],
    },
    "threshold": {"threshold": 0.5, "assertions": ASSERTIONS["several"]},
    "default-judge": {"assertions": []},
    "texts": {"execution": {"target": "rated"}},
    "skipped-defaults": {
        "assertions": [{"type": "contains", "value": "Done"}],
        "tests": [
            {
                "id": case_id,
                "criteria": "c",
                "input": "q",
                "execution": {"skip_defaults": True},
                "assertions": [{"type": "icontains", "value": "hello"}],
            }
            for case_id in RUNS
        ],
    },
    "variables": {
        "tests": [
            {
                "id": case_id,
                "vars": {"who": "Ada"},
                "input": "Greet {{ who }}",
                "criteria": "{{who}}",
                "assertions": [{"type": "contains", "value": "Ada"}],
            }
            for case_id in RUNS
        ],
    },
    "case-threshold": {
        "tests": [
            {
                "id": case_id,
                "criteria": "c",
                "input": "q",
                "execution": {"threshold": 0.4},
                "assertions": [
                    {"type": "contains", "value": "Done"},
                    {"type": "regex", "value": "."},
                ],
            }
            for case_id in RUNS
        ],
    },
    "shared": {
        "input": "Be kind.",
        "metadata": {"x": 1},
        "assertions": [{"type": "contains", "value": "Done"}],
    },
}


# Files with cases, assertions or texts that eval files name.
CASES: Final = tests_with(assertions=[{"type": "is-json"}, {"type": "regex", "value": "e"}])
POLITE: Final = {"assertions": [{"type": "contains-any", "value": ["Hello", "Done"]}]}
OTHER_FILES: Final = {
    "judge.py": PYTHON_JUDGE,
    "aggregate.py": AGGREGATOR,
    "echo.py": ECHO,
    "notes.md": "The notes.\n",
    "more/cases.yaml": json.dumps(CASES),
    "more/cases.jsonl": "\n".join(map(json.dumps, CASES)),
    "more/first.part.yaml": json.dumps(CASES[:4]),
    "more/second.part.yaml": json.dumps(CASES[4:]),
    ".agentv/templates/polite.yaml": json.dumps(POLITE),
    ".agentv/targets.yaml": json.dumps(TARGETS),
    "runs.jsonl": "\n".join(json.dumps({"id": each, **run}) for each, run in RUNS.items()),
    **{f"recorded/{each}.json": json.dumps(run) for each, run in RUNS.items()},
}
NAMES: Final = [*dict.fromkeys([*ASSERTIONS, *FILES])]


def write_files(folder: Path) -> None:
    """Write the eval files ``NAME.eval.yaml`` and all that they name."""
    for name, text in OTHER_FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name in NAMES:
        shared = {"execution": {"target": "default"}, "gate": "agentv", "outputs": "runs.jsonl"}
        own = {
            "tests": tests_with(expected_output=EXPECTED),
            "assertions": ASSERTIONS.get(name, []),
            **FILES.get(name, {}),
        }
        text = json.dumps({**shared, **{key: value for key, value in own.items() if value}})
        (folder / f"{name}.eval.yaml").write_text(text)


CONVERSATION: Final = "talk"
SYSTEM: Final = {"role": "system", "content": "Be kind."}
AGENT: Final = """import json, os, sys
prompt, output = sys.argv[1:]
json.dump({"text": f"You said {prompt}"}, open(output, "w"))
"""
TYPESCRIPT_JUDGE: Final = """import { readFileSync } from "node:fs";
import { count } from "./words.ts";

interface Input { output: string | null }
const given: Input = JSON.parse(readFileSync(0, "utf8"));
const words: number = count(given.output ?? "");
console.log(JSON.stringify({ score: words / 6, assertions: [{ text: "short", passed: true }] }));
"""
WORDS: Final = "export const count = (text: string): number => text.split(' ').length;\n"


def write_conversation(folder: Path, *, node: str) -> None:
    """Write ``conversation.eval.yaml`` and all that it names.

    Args:
        node: path of a Node.js that runs TypeScript.
    """
    command = "python3 agent.py {PROMPT} {OUTPUT_FILE}"
    target = {"name": "default", "provider": "cli", "command": command, "cwd": "own"}
    targets = [{**target, "grader_target": "fixed"}, make_grader("fixed", GRADE)]
    words = {"type": "code-grader", "name": "words", "command": [node, "judge.ts"]}
    turns = [
        {
            "input": "One?",
            "assertions": [{"name": "first", "type": "contains", "value": "One"}, words],
        },
        {
            "input": "Two?",
            "assertions": [
                {"name": "second", "type": "equals", "value": "You said Two?"},
                {"name": "kind", "type": "llm-grader", "prompt": "Is {{ output }} kind?"},
            ],
        },
    ]
    case = {
        "id": CONVERSATION,
        "input": [SYSTEM],
        "mode": "conversation",
        "criteria": "c",
        "turns": turns,
        "assertions": [{"name": "whole", "type": "regex", "value": "One[\\s\\S]*Two"}],
    }
    document = {
        "execution": {"target": "default"},
        "gate": "agentv",
        "tests": [case],
        "assertions": [{"name": "end", "type": "contains", "value": "Three"}],
    }
    files = {
        ".agentv/targets.yaml": json.dumps({"targets": targets}),
        "conversation.eval.yaml": json.dumps(document),
        "own/agent.py": AGENT,
        "judge.ts": TYPESCRIPT_JUDGE,
        "words.ts": WORDS,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


SKILL_CASES: Final[list[dict[str, Any]]] = [
    {
        "id": 1,
        "prompt": "Find the top month in sales.csv.",
        "expected_output": "May",
        "assertions": ["Names one month.", "Names May."],
        "files": ["sales.csv"],
    },
    {"id": 2, "prompt": "Clean sales.csv.", "expected_output": "A clean file"},
]


def write_skill_cases(folder: Path) -> None:
    """Write ``evals.json`` of Agent Skills and all that it names."""
    targets = [make_target("default", "fixed"), make_grader("fixed", GRADE)]
    files = {
        ".agentv/targets.yaml": json.dumps({"targets": targets}),
        "evals.json": json.dumps({"skill_name": "csv-tools", "evals": SKILL_CASES}),
        "sales.csv": "month,sum\nMay,3\n",
        **{f"recorded/{each['id']}.json": json.dumps(run_of("May")) for each in SKILL_CASES},
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
