"""Links that a pull request could commit: no field, option or program follows them outside."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import Ran, run_agentci

SECRET = "value-of-a-secret"
SCORES_ONE = "print('{\"score\": 1}')\n"
TRACE = "traces: trace.json\n"
LOCAL = "evaluators: [{{name: r, type: remote, source: local, repo: {}, ref: ev.py}}]\n"
PROMPT = "evaluators: [{name: p, type: prompt, prompt: LINK/prompt.md, threshold: 1}]\n"
METRIC = "evaluators: [{name: tool_trajectory_avg_score, type: builtin}]\n"
CODE = "evaluators: [{{name: e, type: code, path: {}}}]\n"
JUDGE = "judge: {provider: openai, model: m, base_url: 'http://127.0.0.1:9/v1'}\n"
EVAL = "tests: [{id: one, input: hi, criteria: c, expected_output: hi, assertions: [%s]}]\n"
EQUALS = "{name: j, type: equals, value: hi}"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A workspace, beside a folder with valid files that contain a secret; open to all users."""
    with TemporaryDirectory(dir="/tmp") as top:
        Path(top).chmod(0o755)
        yield _write_files(Path(os.path.realpath(top)))


def _write_files(top: Path) -> Path:
    outside, folder = top / "outside", top / "workspace"
    for path in (outside, folder):
        path.mkdir()
        (path / "trace.json").write_text(otlp())
        (path / "golden.json").write_text(eval_set())
        (path / "ev.py").write_text(SCORES_ONE)
        (path / "one.outputs.jsonl").write_text('{"id": "one", "text": "hi"}\n')
    files = {
        "requirements.txt": f"{SECRET}\n",
        "agentci.lock": f"{SECRET}: [\n",
        "index.yaml": f"{SECRET}: [\n",
        "prompt.md": f"{SECRET} {{{{ response }}}}",
        "rows.jsonl": json.dumps({"query": "q", "response": SECRET}) + "\n",
        "agentci.yaml": f"{TRACE}{METRIC}",
        "labels.csv": f"{SECRET}\n",
        "results.json": f'{{"{SECRET}": 1}}',
        "cases.yaml": f"- {{id: {SECRET}, input: hi, criteria: c}}\n",
        "case.yaml": f"{{id: {SECRET}, input: hi, criteria: c}}\n",
        "graders.py": "def grade(sample, item):\n    return 1.0\n",
    }
    for name, text in files.items():
        (outside / name).write_text(text)
    return folder


def _run(folder: Path, *arguments: str) -> Ran:
    ran = run_agentci(arguments or ("run",), cwd=folder)
    written = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    shown = [ran.out, ran.err, *map(str, ran.problems), *(path.read_text() for path in written)]
    assert SECRET not in "".join(shown)
    return ran


def _read_problems(ran: Ran) -> str:
    problems = [f"{each} {each.hint}" for each in ran.problems]
    return "\n".join([ran.out, ran.err, *problems])


@pytest.mark.parametrize("link", ["", "below/"], ids=["link", "link in a folder"])
@pytest.mark.parametrize(
    "config",
    [
        f"{TRACE}{CODE.format('LINK/ev.py')}",
        f"traces: LINK/trace.json\n{METRIC}",
        f"traces: 'LINK/*.json'\n{METRIC}",
        f"traces: '*/../LINK/t*.json'\n{METRIC}",
        f"traces: trace.json\neval_set: LINK/golden.json\n{METRIC}",
        f"dataset: LINK/rows.jsonl\n{CODE.format('ev.py')}",
        f"{TRACE}{JUDGE}{PROMPT}",
        f"{TRACE}evaluators: [{{name: g, type: grader, grader: 'LINK/graders.py:grade'}}]\n",
        f"{TRACE}{LOCAL.format('LINK')}",
    ],
)
def test_field_of_config_does_not_follow_link(folder: Path, config: str, link: str) -> None:
    (folder / "below").mkdir()
    (folder / link / "out").symlink_to(folder.parent / "outside")
    (folder / "agentci.yaml").write_text(config.replace("LINK", f"{link}out"))
    for command in ("run", "validate"):
        ran = _run(folder, command)
        if command == "validate" and TRACE not in config and "dataset" not in config:
            continue  # it reads no traces
        assert ran.code == 2
        assert "is outside the workspace" in _read_problems(ran)
        assert f"{link}out is a link to {folder.parent}/outside" in _read_problems(ran)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("evals/requirements.txt", f"{TRACE}{CODE.format('evals/ev.py')}"),
        ("agentci.lock", "LOCKED"),
        (
            "evals/index.yaml",
            f"{TRACE}{LOCAL.format('evals')}",
        ),
    ],
)
def test_file_found_by_its_name_is_not_a_link_out(folder: Path, name: str, config: str) -> None:
    (folder / "evals").mkdir()
    (folder / "evals/ev.py").write_text(SCORES_ONE)
    if config == "LOCKED":
        (folder / "evals/requirements.txt").write_text("")
        config = f"{TRACE}{CODE.format('evals/ev.py')}"
    (folder / "agentci.yaml").write_text(config)
    (folder / name).symlink_to(folder.parent / "outside" / Path(name).name)
    ran = _run(folder)
    assert ran.code == 2
    assert f"{name} is a link to {folder.parent}/outside/" in _read_problems(ran)


@pytest.mark.parametrize(
    "text",
    [
        f"outputs: out/one.outputs.jsonl\n{EVAL % EQUALS}",
        "tests: out/cases.yaml\nassertions: [{name: j, type: equals, value: hi}]\n",
        "tests: [file://out/cases.yaml]\nassertions: [{name: j, type: equals, value: hi}]\n",
        EVAL % "{name: j, type: code_judge, command: [python3, ev.py], cwd: out}",
        JUDGE + EVAL % "{name: j, type: llm_judge, prompt: file://out/prompt.md}",
        (EVAL % EQUALS).replace(
            "input: hi", "input: [{role: user, content: [{type: file, value: out/prompt.md}]}]"
        ),
    ],
)
def test_field_of_eval_file_does_not_follow_link(folder: Path, text: str) -> None:
    (folder / "out").symlink_to(folder.parent / "outside")
    (folder / "one.eval.yaml").write_text(text)
    ran = _run(folder, "run", "one.eval.yaml")
    assert ran.code == 2
    assert f"out is a link to {folder.parent}/outside" in _read_problems(ran)


@pytest.mark.parametrize("name", ["one.outputs.jsonl", "one.output.json"])
def test_outputs_next_to_eval_file_are_not_a_link_out(folder: Path, name: str) -> None:
    (folder / "one.outputs.jsonl").unlink()
    (folder / "one.eval.yaml").write_text(EVAL % EQUALS)
    (folder / name).symlink_to(folder.parent / "outside" / "one.outputs.jsonl")
    ran = _run(folder, "run", "one.eval.yaml")
    assert ran.code == 2
    assert f"{name} is a link to {folder.parent}/outside" in _read_problems(ran)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "out/agentci.yaml"],
        ["run", "out"],
        ["run", "--traces", "out/trace.json"],
        ["run", "--traces", "out/*.json"],
        ["run", "--eval-set", "out/golden.json"],
        ["run", "--output-dir", "out"],
        ["run", "--output-dir", "out/new"],
        ["run", "--output-dir", "HERE/out"],
        ["run", "--traces", "HERE/out/trace.json"],
        ["validate", "out/agentci.yaml"],
        ["plan", "out/agentci.yaml"],
        ["lock", "out/agentci.yaml"],
        ["merge", "out/results.json"],
        ["merge", "out"],
        ["compare", "out/results.json", "out/results.json"],
        ["calibrate", "--labels", "out/labels.csv"],
        ["evaluator", "run", "out/ev.py", "--trace", "trace.json"],
        ["evaluator", "run", "ev.py", "--trace", "out/trace.json"],
        ["evaluator", "init", "polite", "--dir", "out"],
    ],
    ids=" ".join,
)
def test_option_does_not_follow_link(folder: Path, arguments: list[str]) -> None:
    outside = folder.parent / "outside"
    (folder / "out").symlink_to(outside)
    (folder / "agentci.yaml").write_text(f"{TRACE}{METRIC}")
    before = sorted(outside.iterdir())
    ran = _run(folder, *(each.replace("HERE", str(folder)) for each in arguments))
    assert ran.code == 2
    text = _read_problems(ran)
    if (folder / "agentci-results/results.json").exists():
        text += json.dumps(ran.results["problems"])
    assert f"out is a link to {outside}" in text
    assert sorted(outside.iterdir()) == before


def test_option_may_name_what_is_outside(folder: Path) -> None:
    (folder / "agentci.yaml").write_text(METRIC)
    outside = folder.parent / "outside"
    arguments = ["--traces", "../outside/trace.json", "--eval-set", f"{outside}/golden.json"]
    assert run_agentci(["run", *arguments, "--output-dir", f"{outside}/out"], cwd=folder).code == 0
    assert (outside / "out/results.json").is_file()


def test_links_within_workspace_are_followed(folder: Path) -> None:
    (folder / "shared").mkdir()
    (folder / "shared/ev.py").write_text(SCORES_ONE)
    (folder / "evals").symlink_to("shared")
    (folder / "link.json").symlink_to("trace.json")
    (folder / "agentci.yaml").write_text(f"traces: link.json\n{CODE.format('evals/ev.py')}")
    assert run_agentci(["run"], cwd=folder).code == 0


def test_workspace_behind_link_is_used(folder: Path) -> None:
    (folder / "agentci.yaml").write_text(f"{TRACE}{CODE.format('ev.py')}")
    link = folder.parent / "link"
    link.symlink_to(folder)
    ran = run_agentci(
        ["run", f"{link}/agentci.yaml", "--traces", f"{link}/trace.json"],
        cwd=folder,
        environ={"GITHUB_WORKSPACE": str(link)},
    )
    assert ran.code == 0


@pytest.mark.parametrize("name", ["results.json", "report.html"])
def test_report_replaces_link(folder: Path, name: str) -> None:
    (folder / "agentci.yaml").write_text(f"{TRACE}{CODE.format('ev.py')}")
    target = folder.parent / "outside/results.json"
    before = target.read_text()
    (folder / "agentci-results").mkdir()
    (folder / "agentci-results" / name).symlink_to(target)
    assert run_agentci(["run"], cwd=folder).code == 0
    assert target.read_text() == before
    assert not (folder / "agentci-results" / name).is_symlink()


class TestPrograms:
    """Programs in the sandbox, which find links next to them."""

    @pytest.fixture
    def key(self, folder: Path) -> Path:
        """A file outside, which every user may read."""
        outside = folder.parent / "outside"
        (outside / "run.sh").write_text("#!/bin/sh\n")
        (outside / "run.sh").chmod(0o755)
        (outside / "key").write_text(SECRET)
        return outside / "key"

    @staticmethod
    def _write(path: Path, key: Path, *, shebang: str = "#!/bin/sh") -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"{shebang}\nif cat {key} >&2; then echo '{{\"score\": 1}}';"
            " else echo '{\"score\": 0}'; fi\n"
        )
        path.chmod(0o755)

    @pytest.mark.parametrize("name", ["lib", "lib64", "libexec", "bin/data"])
    def test_link_beside_evaluator_is_closed(self, folder: Path, key: Path, name: str) -> None:
        self._write(folder / "bin/ev.sh", key)
        (folder / name).symlink_to(key.parent)
        (folder / "agentci.yaml").write_text(f"{TRACE}{CODE.format('bin/ev.sh')}")
        assert _run(folder).results["results"][0]["score"] == 0

    def test_link_beside_interpreter_is_closed(self, folder: Path, key: Path) -> None:
        self._write(folder / "ev.x", key, shebang=f"#!{folder}/tools/bin/run")
        (folder / "tools/bin").mkdir(parents=True)
        (folder / "tools/bin/run").symlink_to("/bin/sh")
        (folder / "tools/lib").symlink_to(key.parent)
        (folder / "agentci.yaml").write_text(f"{TRACE}{CODE.format('ev.x')}")
        assert _run(folder).results["results"][0]["score"] == 0

    @pytest.mark.parametrize("word", ["{outside}/run.sh", "out/run.sh"])
    def test_folder_of_word_in_command_is_closed(self, folder: Path, key: Path, word: str) -> None:
        self._write(folder / "judge.sh", key)
        (folder / "out").symlink_to(key.parent)
        command = f"[./judge.sh, {word.format(outside=key.parent)}]"
        entry = f"{{name: j, type: code_judge, command: {command}}}"
        (folder / "one.eval.yaml").write_text(EVAL % entry)
        assert _run(folder, "run", "one.eval.yaml").results["results"][0]["score"] == 0
