"""The loaders of foreign input, each as a function of the bytes of one file or message.

A loader returns, or raises the error that its input leads to. Everything else is a bug: another
exception, or more than ``PROCESSOR_SECONDS``.
"""

import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, Final

from agentci._util.archives import (
    ArchiveError,
    iterate_members,
    iterate_tar_members,
    iterate_zip_members,
)
from agentci._util.text.json_text import dumps
from agentci._util.text.python_code import parse_module
from agentci._util.workspace import find_workspace
from agentci.cli.commands.calibrate import read_labels
from agentci.cli.session import Session, make_session
from agentci.config.settings import parse_settings
from agentci.errors import AgentciError, EvaluatorError
from agentci.evaluators.agentevals.code import parse_eval_result, truncate_result
from agentci.evaluators.agentevals.vertex_metric import parse_adk_result
from agentci.evaluators.agentv.code_judge import parse_finding
from agentci.evaluators.grader_protocol import parse_grade
from agentci.evaluators.program_output import parse_output
from agentci.evaluators.prompt_template import check_prompt_template
from agentci.evaluators.prompts import (
    UntrustedTextFence,
    make_question,
    make_question_from_template,
)
from agentci.evaluators.pytest_agent_evals import make_grade_judgement, parse_filled_template
from agentci.execution.requirements import decode_requirements
from agentci.gate.comparison import compare_runs
from agentci.gate.decision import compute_totals
from agentci.github.events import (
    explain_missing_secrets,
    find_base_commit,
    parse_event,
    parse_triggering_run,
)
from agentci.judges import client
from agentci.judges.budget import compute_charge
from agentci.judges.evals_api_client import check_run, parse_grades
from agentci.judges.providers import PROVIDERS, InvalidJsonError
from agentci.judges.transport import parse_api_error
from agentci.judges.verdicts import parse_verdict
from agentci.model.case import ResultsSource
from agentci.model.judges import (
    ChecklistSchema,
    JudgePrompt,
    ModelResponse,
    ModelSettings,
    ScoreSchema,
    TokenPrices,
)
from agentci.model.requests import ComputeMetric, ConstantJudgement, ProgramOutput
from agentci.model.values import JsonObject, Place
from agentci.recordings import otlp
from agentci.recordings.otlp_protobuf import ProtobufError, decode_logs, decode_traces
from agentci.recordings.telemetry.conventions.registry import READ_ATTRIBUTES
from agentci.remote.lock_file import read_lock
from agentci.remote.sources.validation import parse_index
from agentci.reports.merge.merge import merge_reports
from agentci.reports.merge.read import ReportFile, read_report
from agentci.reports.registry import REPORT_WRITERS
from agentci.result_files.python_tools import is_needed_member
from agentci.result_files.registry import is_archive, read_result_archive, read_result_file
from agentci.runner.check import run_check
from agentci.runner.plan import make_plan
from agentci.runner.recorded_results import SourcedResults, plan_recorded_checks
from tests.fuzz import record_targets

NO_SOURCE: Final = ResultsSource(path="a.json", place=Place(file="a.yaml"))
ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples"
PROCESSOR_SECONDS: Final = 10.0
NOWHERE: Final = Place(file="input")

Loader = Callable[[bytes], object]


class TooSlowError(Exception):
    """A loader used more processor time than it may."""


@contextmanager
def limited_time(seconds: float = PROCESSOR_SECONDS) -> Iterator[None]:
    """Raise ``TooSlowError`` if the block uses more processor time, however busy the machine is."""

    def stop(*_: object) -> None:
        raise TooSlowError(f"more than {seconds} s of processor time")

    former = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)


@dataclass(frozen=True, slots=True)
class Target:
    """A loader, and files from which inputs are made by small changes.

    Attributes:
        errors: what it may raise.
        seeds: globs of files, and texts.
    """

    load: Loader
    seeds: tuple[str | bytes, ...]
    errors: tuple[type[Exception], ...] = (AgentciError,)

    def check(self, data: bytes) -> None:
        """Load ``data``; raises what is a bug."""
        with limited_time(), suppress(*self.errors):
            self.load(data)

    def list_seeds(self) -> list[bytes]:
        """Contents of the seed files."""
        texts = [each for each in self.seeds if isinstance(each, bytes)]
        globs = [each for each in self.seeds if isinstance(each, str)]
        files = sorted(chain.from_iterable(map(ROOT.glob, globs)))
        return [*texts, *(file.read_bytes() for file in files)]


# Values that a changed input has in the place of another: beyond limits of parsers and numbers.
EXTREMES: Final = (
    *(b"NaN", b"NaNN", b"-Infinity", b"1e999", b"-0.0", b"1e-400", b"null", b"true", b"{}", b"[]"),
    *(b"9" * 20, b"9" * 320, b"9" * 400, b"-" + b"9" * 400, b"9" * 5_000, b"0x" + b"f" * 400),
    *(b".inf", b"~", b"2026-13-99", b'"0001-01-01T00:00+23:59"', b'"9999-12-31T23:59-23:59"'),
    *(b'"\\ud800"', b'"\\u0000"', b'""', b'"' + b"a" * 3_000 + b'"', b'"\xff"', b'"1e400"'),
    *(b"[" * 70 + b"]" * 70, b"[" * 400 + b"]" * 400, b"[" * 3_000 + b"]" * 3_000, b"[" * 99_999),
    *(b'{"a":' * 400 + b"1" + b"}" * 400, b"[0,[0,[0]]]", b"1, 1", b'"a", "a": 1', b"1e308"),
)
_SCALAR: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[-+.\w]+|\{\}|\[\]')

_WORD: Final = re.compile(rb"[-+.\w]+")


def change(data: bytes, random: Random) -> bytes:
    """Replace one value, key or word by an extreme one or by another of the same data."""
    words = list(random.choice((_SCALAR, _WORD)).finditer(data))
    if not words:
        return data + random.choice(EXTREMES)
    chosen, other = random.choice(words), random.choice(words)
    new = random.choice((random.choice(EXTREMES), other[0]))
    return data[: chosen.start()] + new + data[chosen.end() :]


class ExampleWorkspace:
    """A copy of an example in which one file is replaced, and planned as `agentci run` does."""

    def __init__(self, name: str, config: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="agentci-fuzz-"))
        shutil.copytree(EXAMPLES / name, self.folder, dirs_exist_ok=True)
        (self.folder / "rules.eval.yaml").write_bytes(RULES)
        self.config = config
        with working_folder(self.folder):
            self.session: Session = make_session({"PATH": os.defpath})

    def plan(self, file: str, data: bytes, config: str | None = None) -> None:
        """Plan with ``data`` as a file, and execute the checks that only compute."""
        path = self.folder / file
        former = path.read_bytes() if path.exists() else None
        path.write_bytes(data)
        settings, services = parse_settings((config or self.config,), {}), self.session.services
        try:
            with working_folder(self.folder):
                checks = make_plan(settings, services).checks
                for check in (each for each in checks if each.case.dialogue):
                    with suppress(EvaluatorError):
                        request = check.evaluator.ask(check.load())
                        if isinstance(request, ComputeMetric | ConstantJudgement):
                            dumps(run_check(check, services).judgement)
        finally:
            path.unlink() if former is None else path.write_bytes(former)


@contextmanager
def working_folder(folder: Path) -> Iterator[None]:
    """Change the working directory."""
    former = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(former)


@cache
def workspace(name: str, config: str) -> ExampleWorkspace:
    """The copy of an example, made once."""
    return ExampleWorkspace(name, config)


def planned(name: str, config: str, file: str, *, as_config: bool = False) -> Loader:
    """A loader that replaces ``file`` of an example."""
    own = file if as_config else None
    return lambda data: workspace(name, config).plan(file, data, own)


JUDGED: Final = "What was judged: "
SCHEMAS: Final = (
    ScoreSchema(notes=("hits", "misses")),
    ScoreSchema(kind="boolean", value_name="result", reason_name="reason"),
    ScoreSchema(kind="label", value_name="label", labels=("good", "bad")),
    ScoreSchema(low=float("-inf"), high=float("inf")),
    ChecklistSchema(names=("a", "b")),
    ChecklistSchema(names=("a", "1"), kind="number"),
)


def _load_reply(data: bytes) -> None:
    judged, _, text = data.decode("utf-8", "replace").rpartition("\n\n\n")
    prompt = f"{JUDGED}{UntrustedTextFence([judged]).wrap('answer', judged)}"
    for schema in SCHEMAS:
        with suppress(EvaluatorError):
            dumps(parse_verdict(ModelResponse(text=text, ending="complete"), schema, prompt))


def _load_result(data: bytes) -> None:
    output = ProgramOutput(stdout=data, stderr="", exit_code=0)
    with suppress(EvaluatorError):
        dumps(parse_adk_result(data).model_dump(mode="json"))
    with suppress(EvaluatorError):
        template, values = parse_filled_template(output)
        make_question_from_template(template, values, SCHEMAS[0])
    with suppress(EvaluatorError):
        dumps(make_grade_judgement(parse_grade(output), threshold=0.5))
    document = parse_output(data)
    dumps(document)
    dumps(parse_finding(document, size=len(data), prefers_assertions=True))
    result = parse_eval_result(document)
    dumps(truncate_result(result, size=10**6, shown=("issues",)))


def _load_report(data: bytes) -> None:
    report = read_report(data, file="results.json")
    parts = [ReportFile(file="results.json", report=report)]
    for merged in (report, merge_reports(parts, fail_on="failed")):
        for writer in REPORT_WRITERS.values():
            for _ in writer.render(merged):
                pass


SETTINGS: Final = ModelSettings(
    provider="openai", prices=TokenPrices(input_usd=1.0, output_usd=2.0)
)
PROMPT: Final = JudgePrompt(system="", user="", schema=None)


def _load_model_response(data: bytes) -> None:
    parse_api_error(429, data)
    parsers = (*(each.parse_response for each in PROVIDERS.values()), client.parse_response)
    for parse in parsers:
        with suppress(EvaluatorError, InvalidJsonError):
            compute_charge(PROMPT, SETTINGS, parse(data))
    document = json.loads(data)
    with suppress(EvaluatorError):
        check_run(document if isinstance(document, dict) else {}, 1)
        parse_grades(document if isinstance(document, list) else [document], 1)


def _load_event(data: bytes) -> None:
    payload = json.loads(data)
    for name in ("pull_request", "push", "merge_group", "schedule"):
        event = parse_event(name, "1" * 40, payload)
        dumps(find_base_commit(event, "main"))
        explain_missing_secrets(event, "me")
    parse_triggering_run(payload)


def _load_template(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    with suppress(AgentciError):
        check_prompt_template(text, NOWHERE)
    values: JsonObject = {"response": text, "a": {"b": [text]}, "input": "x"}
    make_question("Rate.", text, values, SCHEMAS[0])


def _load_grader(data: bytes) -> None:
    module = parse_module(data.decode("utf-8", "replace"))
    if module is not None:
        module.reach(["grade"])
        module.reach(None)
        module.find_read_keys("grade", 1)


def _load_requirements(data: bytes) -> None:
    requirements = decode_requirements(data)
    _ = requirements.install_lines


def _load_tool_results(data: bytes) -> None:
    if not is_archive(data):
        read_result_file(data, file="results")
        return
    members = iterate_members(data, is_needed_member, member_bytes=2**16, total_bytes=2**20)
    with suppress(ArchiveError):
        read_result_archive(members, file="results")


def _load_labels(data: bytes) -> None:
    folder = workspace("agentevals", "eval_config.yaml").folder
    (folder / "labels.jsonl").write_bytes(data)
    read_labels("labels.jsonl", find_workspace(folder))


def _load_protobuf(data: bytes) -> None:
    for decode in (decode_traces, decode_logs):
        with suppress(ProtobufError):
            document = decode(data)
            dumps(document)
            for _ in otlp.read(document or {"resourceSpans": []}, READ_ATTRIBUTES):
                pass


# A span and a log record, each in a request.
PROTOBUF_SEEDS: Final = (
    bytes.fromhex(
        "0a9c011299011296010a100102030405060708090a0b0c0d0e0f10120801020304050607082a0663686174206d"
        "30033901000000000000004100000000000100004a1f0a1567656e5f61692e6f7065726174696f6e2e6e616d65"
        "12060a04636861744a370a1967656e5f61692e75736167652e696e7075745f746f6b656e73121a2a180a0b18fb"
        "ffffffffffffffff010a0921000000000000e03f7a021802"
    ),
    bytes.fromhex(
        "0a34123212302a040a0248694a100102030405060708090a0b0c0d0e0f10590500000000000000620d67656e5f"
        "61692e63686f696365"
    ),
)


def _load_results(data: bytes) -> None:
    if is_archive(data):
        limits = {"member_bytes": 2**20, "total_bytes": 2**22}
        members = iterate_members(data, is_needed_member, **limits)
        found = read_result_archive(members, file="log.eval")
    else:
        found = read_result_file(data, file="samples_task_2026-11-23T08.jsonl")
    results = SourcedResults(source=NO_SOURCE, path=Path("a.json"), found=found)
    planned = plan_recorded_checks([results], config="a.yaml", reserved=(), only=())
    checked = [each.read_result(each) for each in planned.checks if each.read_result]
    dumps(compute_totals(checked))
    compare_runs(checked, checked, (), baseline="b")


def _load_archive(data: bytes) -> None:
    for members in (iterate_zip_members(data), iterate_tar_members(data, limit_bytes=2**20)):
        with suppress(ArchiveError):
            for member in members:
                member.read(2**16)


# An eval file with all rules that read values of an answer and measurements of a run.
RULES: Final = b"""\
outputs: rules.jsonl
evalcases:
- id: a
  input: Hi
  expected_outcome: c
  expected_messages: [{role: assistant, content: {n: 12.5, d: 2026-03-05, x: [1]}}]
  evaluators:
  - name: fields
    type: field_accuracy
    fields:
    - {path: n, match: numeric_tolerance, tolerance: 0.1}
    - {path: n, match: numeric_tolerance, tolerance: 0.1, relative: true}
    - {path: d, match: date}
    - {path: "x[0]", match: exact}
  - {name: late, type: latency, threshold: 100}
  - {name: cost, type: cost, budget: 1}
  - {name: tokens, type: token_usage, max_total: 10, max_input: 5}
  - {name: metrics, type: execution_metrics, max_tool_calls: 1, target_exploration_ratio: 0.5}
  - {name: calls, type: tool_trajectory, mode: exact, expected: [{tool: f, args: {a: 1}}]}
"""
RULE_ROW: Final = (
    b'{"id": "a", "text": "{\\"n\\": 12, \\"d\\": \\"2026-03-05\\", \\"x\\": [1]}",'
    b' "duration_ms": 9, "cost_usd": 0.5, "token_usage": {"input": 1, "output": 2, "cached": 0}}\n'
    b'{"id": "a", "attempt": 1, "output_messages": [{"role": "assistant", "content": {"n": 12.6},'
    b' "tool_calls": [{"tool": "f", "input": {"a": 1}, "output": "o"}]}], "duration_ms": 1.5}'
)
AGENTEVALS: Final = ("agentevals", "eval_config.yaml")
AGENTV: Final = ("agentv", "agent.eval.yaml")
GRADERS: Final = ("graders", "eval_config.yaml")

# JSON that is refused with ValueError by the callers of the loader.
_JSON_ERRORS: Final = (AgentciError, ValueError, RecursionError)

TARGETS: Final[Mapping[str, Target]] = {
    "grader": Target(_load_grader, ("examples/*/*.py", "tests/evaluator_programs/*.py")),
    "config": Target(
        planned(*AGENTEVALS, "eval_config.yaml", as_config=True),
        ("examples/*/eval_config.yaml", "tests/examples/*/*/config.yaml"),
    ),
    "eval-file": Target(
        planned(*AGENTV, "agent.eval.yaml", as_config=True),
        ("examples/agentv/*.eval.yaml", "tests/conformance/agentv/*/*.yaml"),
    ),
    "eval-lines": Target(
        planned(*AGENTV, "cases.jsonl", as_config=True),
        (
            (
                b'{"id": "a", "input": "Hi", "expected_output": "Ho", "criteria": "c"}\n'
                b'{"id": "b", "input": [{"role": "user", "content": "Hi"}], "assertions":'
                b' [{"type": "contains", "value": "x"}, "Is polite"]}'
            ),
        ),
    ),
    "eval-set": Target(planned(*AGENTEVALS, "eval_set.json"), ("examples/*/eval_set.json",)),
    "traces": Target(
        planned(*AGENTEVALS, "recordings/where_is_my_parcel.json"),
        (
            *("examples/agentevals/recordings/*", "tests/conformance/agentevals/**/*.json*"),
            *(
                "tests/recordings/span_files/*",
                "tests/recordings/transcripts/files/otlp-proto*/*/t*",
            ),
        ),
    ),
    "transcripts": Target(
        planned(*AGENTEVALS, "recordings/where_is_my_parcel.json"),
        ("tests/recordings/transcripts/files/*/*/*.json*",),
    ),
    "otlp-protobuf": Target(_load_protobuf, PROTOBUF_SEEDS),
    "recorded-exchanges": Target(record_targets.load_exchanges, record_targets.EXCHANGE_SEEDS),
    "recorded-export": Target(
        record_targets.load_export,
        (*PROTOBUF_SEEDS, "examples/agents/recordings/*", "tests/recordings/span_files/*.json"),
    ),
    "recorded-requests": Target(
        record_targets.load_request_file, record_targets.REQUEST_FILE_SEEDS
    ),
    "recorded-cases": Target(record_targets.load_cases, record_targets.CASE_SEEDS),
    "results": Target(
        _load_results, ("tests/result_files/files/*/*/[!eb]*",), (AgentciError, ArchiveError)
    ),
    "dataset": Target(planned(*GRADERS, "answers.jsonl"), ("examples/graders/*.jsonl",)),
    "answers": Target(planned("agentv", "rules.eval.yaml", "rules.jsonl"), (RULE_ROW,)),
    "outputs": Target(
        planned(*AGENTV, "recorded.jsonl"),
        ("examples/agentv/recorded.jsonl", "tests/conformance/agentv/7*/*.json*"),
    ),
    "tool-results": Target(_load_tool_results, ("tests/result_files/files/*/*/*.*",)),
    "report": Target(_load_report, ("tests/golden/results*.json",)),
    "lock": Target(
        lambda data: read_lock(data, file="agentci.lock"),
        (
            b"version: 1\nevaluators:\n- source: github\n  repository: o/r\n  revision: main\n"
            b"  ref: e/a.py\n  commit: " + b"1" * 40 + b"\n  files:\n    a.py: " + b"a" * 64,
        ),
    ),
    "index": Target(
        lambda data: parse_index(data, name="index", source="s", is_usable=bool),
        (b"evaluators:\n- name: a\n  path: e/a.py\n  tags: [x, 1]\n  description: d\n",),
    ),
    "template": Target(
        _load_template,
        ("examples/agentv/prompts/*.md", b"{{ response }} {{ a.b[0] }} {% if input %}{% endif %}"),
    ),
    "reply": Target(
        _load_reply,
        (
            b'He said {"score": 1}\n\n\n{"reasoning": "so", "score": 0.5, "hits": ["a"]}',
            b'{"x": "{\\"result\\": true}"}\n\n\nIt is\n```json\n{"result": true}\n```\nso.',
            b'{"checks": [{"id": "a", "satisfied": true}, {"id": "1", "score": 3}]}',
            b'<think>hm</think>{"label": "good", "assertions": [{"text": "a", "passed": true}]}',
        ),
    ),
    "result": Target(
        _load_result,
        (
            (
                b'{"score": 0.85, "status": null, "per_invocation_scores": [1.0, 0.7],'
                b' "details": {"issues": ["turn 2 is too short"]}, "protocol_version": "1.1"}'
            ),
            (
                b'{"score": 1, "hits": ["a"], "misses": [], "reasoning": "r", "assertions":'
                b' [{"text": "t", "passed": true}], "details": {"n": 1}}'
            ),
            b'{"text": "a\\u00000\\u0000b", "values": [["query", "Hi"]]}',
            b'log\n{"score": 1}',
            b'{"score": 1.0, "status": 1, "turns": [{"score": 1.0, "status": 1, "notes": []}]}',
        ),
    ),
    "model-response": Target(
        _load_model_response,
        (
            (
                b'{"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "x"}}],'
                b' "usage": {"prompt_tokens": 1, "completion_tokens": 2}}'
            ),
            (
                b'{"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn",'
                b' "usage": {"input_tokens": 1, "output_tokens": 2}}'
            ),
            (
                b'{"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}],'
                b' "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}}'
            ),
            (
                b'{"data": [{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [1, 1]}],'
                b' "usage": {"prompt_tokens": 3}}'
            ),
            b'{"error": {"message": "slow down", "type": "rate_limit", "code": 429}}',
            b'{"status": "completed", "result_counts": {"total": 1, "errored": 0}}',
            b'[{"datasource_item": {"n": 0}, "results": [{"score": 1, "passed": true}]}]',
        ),
        _JSON_ERRORS,
    ),
    "event": Target(
        _load_event,
        (
            (
                b'{"pull_request": {"number": 1, "head": {"sha": "1", "repo": {"full_name": "o"}},'
                b' "base": {"sha": "2", "ref": "main", "repo": {"full_name": "o/r"}}}}'
            ),
            b'{"workflow_run": {"id": 1, "head_sha": "1", "event": "push", "pull_requests": [{}]}}',
            b'{"ref": "refs/heads/main", "before": "1", "repository": {"default_branch": "main"}}',
        ),
        _JSON_ERRORS,
    ),
    "requirements": Target(
        _load_requirements,
        (b"# x\nrequests>=2 --hash=sha256:ab \\\n\nflask[a]==1; python_version>'3'",),
    ),
    "labels": Target(_load_labels, (b'{"case": "a", "human": "pass", "evaluator": "e"}\n',)),
    "archive": Target(_load_archive, (b"PK\x05\x06" + b"\0" * 18, b"\x1f\x8b\x08" + b"\0" * 9)),
}


def changed_inputs(target: Target, random: Random, count: int) -> Iterator[bytes]:
    """Seeds with up to three changes each."""
    seeds: list[Any] = target.list_seeds()
    for _ in range(count):
        data = random.choice(seeds)
        for _ in range(random.randint(1, 3)):
            data = change(data, random)
        yield data
