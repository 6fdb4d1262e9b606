"""Definitions and files of a pull request that overload what reads them, or lead it elsewhere."""

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

from tests._util.test_zstd_archives import make_archive
from tests.attacks.attack import attack
from tests.attacks.conftest import MakeJob

CPU_SECONDS = 60
STEPS = 40
ROWS = json.dumps({"query": "q", "response": json.dumps({"a": "x" * 50}), "tool_calls": []})


def make_config(check: str, value: Any) -> str:
    return f"dataset: rows.jsonl\nchecks:\n- {check}: {json.dumps(value)}\n"


def refer_twice(keyword: str, last: Any) -> Any:
    steps = {f"s{n}": {keyword: [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(STEPS)}
    return {"$defs": {**steps, f"s{STEPS}": last}, "$ref": "#/$defs/s0"}


def find_wrong(make_job: MakeJob, jobs: Mapping[str, Mapping[str, str | bytes]]) -> dict[str, Any]:
    """Run jobs; return those that do not end with a clear result in bounded time."""
    wrong: dict[str, Any] = {}
    for name, files in jobs.items():
        job = make_job()
        job.write({"rows.jsonl": ROWS, **files})
        ran = job.run(cpu_seconds=CPU_SECONDS)
        text = ran.out + ran.err
        if ran.code not in (0, 1, 2, 3) or "root:" in text or "Traceback" in text:
            wrong[name] = (ran.code, text[-500:])
        job.remove()
    return wrong


@attack("Y1", "user")
def test_json_schemas_are_applied_in_bounded_time(make_job: MakeJob) -> None:
    schemas = {
        "all of twice": refer_twice("allOf", {}),
        "any of twice": refer_twice("anyOf", {"type": "null"}),
        "one of twice": {"unevaluatedProperties": False, **refer_twice("oneOf", {})},
        "itself": {"$ref": "#"},
        "dynamic": {"$dynamicAnchor": "n", "allOf": [{"$dynamicRef": "#n"}]},
        "other host": {"$ref": "http://127.0.0.1:9/x"},
        "other file": {"$ref": "file:///etc/passwd"},
        "other meta-schema": {"$schema": "file:///etc/passwd", "type": "object"},
        "pattern": {"patternProperties": {"(a{500}){500}": {}}},
    }
    jobs = {name: {"agentci.yaml": make_config("json_schema", s)} for name, s in schemas.items()}
    assert find_wrong(make_job, jobs) == {}


@attack("Y2", "user")
def test_schema_files_and_long_answers_are_read_in_bounded_time(make_job: MakeJob) -> None:
    named = make_config("json_schema", "schema.json")
    items = json.dumps([{"a": number} for number in range(20_000)])
    jobs = {
        "deep schema": {"agentci.yaml": named, "schema.json": '{"not":' * 20_000 + "{}"},
        "long list": {
            "agentci.yaml": make_config("json_schema", {"uniqueItems": True}),
            "rows.jsonl": json.dumps({"query": "q", "response": items}),
        },
        "long number": {
            "agentci.yaml": make_config("json_schema", {"multipleOf": 0.1}),
            "rows.jsonl": json.dumps({"query": "q", "response": "9" * 5000}),
        },
    }
    assert find_wrong(make_job, jobs) == {}


@attack("Y3", "user")
def test_patterns_take_linear_time(make_job: MakeJob) -> None:
    patterns = {
        "nested repeats": "(a+)+$",
        "large repeats": "((a{1000}){1000}){1000}",
        "empty repeats": "(?:(?:(?:a*)*)*)*b",
        "many groups": "(" * 3000 + "a" + ")" * 3000,
        "many branches": "a|" * 100_000 + "b",
        "classes": "[\\p{L}\\p{N}]{1000}",
    }
    rows = json.dumps({"query": "q", "response": "a" * 500_000})
    jobs = {
        name: {"agentci.yaml": make_config("matches", pattern), "rows.jsonl": rows}
        for name, pattern in patterns.items()
    }
    assert find_wrong(make_job, jobs) == {}


ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 10}">' for n in range(12))
SUITE = '<testsuites><testsuite name="s"><testcase name="{}"/></testsuite></testsuites>'


@attack("Y4", "user")
def test_result_files_in_xml_expand_no_entities(make_job: MakeJob) -> None:
    files: Mapping[str, str | bytes] = {
        "entities": f"<!DOCTYPE t [{ENTITIES}]>{SUITE.format('&e11;')}",
        "file": f'<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]>{SUITE.format("&x;")}',
        "host": f'<!DOCTYPE t [<!ENTITY % x SYSTEM "http://127.0.0.1:9/">%x;]>{SUITE.format("a")}',
        "deep": "<testsuites>" + '<testsuite name="s">' * 100_000,
        "encoding": b'<?xml version="1.0" encoding="utf-7"?>' + SUITE.format("a").encode(),
    }
    jobs: dict[str, dict[str, str | bytes]] = {
        name: {"agentci.yaml": "results: r.xml\n", "r.xml": content}
        for name, content in files.items()
    }
    assert find_wrong(make_job, jobs) == {}


def pack(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


@attack("Y5", "user")
def test_logs_of_inspect_are_unpacked_in_bounded_memory(make_job: MakeJob) -> None:
    header = json.dumps(
        {"version": 2, "status": "success", "eval": {"task": "t"}, "plan": {}}
    ).encode()
    member = "samples/1_epoch_1.json"
    archives = {
        "large member": pack({"header.json": header, member: b"0" * 300_000_000}),
        "large header": pack({"header.json": b"[" * 100_000_000}),
        "many members": pack(
            {"header.json": header, **{f"samples/{n}_epoch_1.json": b"{}" for n in range(30_000)}}
        ),
        "other folder": pack({"header.json": header, "samples/../../../x.json": b'{"id": 1}'}),
        "cut off": pack({"header.json": header})[:-10],
    }
    jobs: dict[str, dict[str, str | bytes]] = {
        name: {"agentci.yaml": "results: l.eval\n", "l.eval": content}
        for name, content in archives.items()
    }
    assert find_wrong(make_job, jobs) == {}


# Frames of Zstandard that claim a window of 2 GiB, and contents of 4 EiB.
WINDOW = b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"
CONTENT = b"\x28\xb5\x2f\xfd\xe0" + (2**62).to_bytes(8, "little") + b"\x01\x00\x00"


@attack("Y7", "user")
def test_logs_in_zstandard_are_unpacked_in_bounded_memory(make_job: MakeJob) -> None:
    header, sample = b'{"version": 2, "status": "success", "eval": {"task": "t"}}', bytes(2**28)
    archives = {
        "large header": make_archive({"header.json": sample}),
        "large members": make_archive(
            {"header.json": header, **{f"samples/{n}_epoch_1.json": sample for n in range(4)}}
        ),
        "window": make_archive({"header.json": header}, frames={"header.json": WINDOW}),
        "content": make_archive({"header.json": header}, frames={"header.json": CONTENT}),
    }
    jobs: dict[str, dict[str, str | bytes]] = {
        name: {"agentci.yaml": "results: l.eval\n", "l.eval": content}
        for name, content in archives.items()
    }
    assert find_wrong(make_job, jobs) == {}


@attack("Y6", "user")
def test_tables_and_reports_are_read_in_bounded_time(make_job: MakeJob) -> None:
    files = {
        "deep.json": '{"results":{"tool":{"name":"x"},"summary":{},"tests":' + "[" * 300_000,
        "field.csv": 'id,metric,score\n"' + "a" * 20_000_000 + '",m,1\n',
        "columns.csv": ",".join(f"c{n}" for n in range(200_000)) + "\n1\n",
        "number.jsonl": '{"id": "a", "metric": "m", "score": ' + "9" * 5000 + "}\n",
        "keys.jsonl": '{"id": "a", "score": 0, "score": 1}\n',
    }
    jobs = {
        name: {"agentci.yaml": f"results: {name}\n", name: content}
        for name, content in files.items()
    }
    assert find_wrong(make_job, jobs) == {}
