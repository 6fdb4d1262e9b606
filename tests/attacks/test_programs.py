"""Programs and packages that overload or mislead what reads them outside the sandbox."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.attacks.attack import attack
from tests.attacks.conftest import MakeJob
from tests.attacks.job import CODE_ENTRY, Job, results_of

CPU_SECONDS = 60
# Read for fingerprints, of what a check depends on.
PROGRAMS: Mapping[str, str] = {
    "long sum": f"x = {'a + ' * 40_000}a",
    "deep sum": f"def grade(x):\n    return {'x + ' * 950}x",
    "attributes": f"x = a{'.b' * 2_500}",
    "parentheses": f"x = {'(' * 9_000}1{')' * 9_000}",
    "negations": f"x = {'not ' * 5_000}1",
    "conditions": f"x = {'1 if a else ' * 900}1",
    "format strings": f"x = f'{'{a}' * 60_000}'",
    "assignments": "x = 1\n" * 40_000,
    "decorators": "@a\n" * 60_000 + "def f(): pass",
    "dots": f"from {'.' * 200_000} import a",
    "methods": "class C:\n" + "".join(f"  def m{n}(s): s.m{n + 1}()\n" for n in range(6_000)),
    "mutual calls": "".join(f"def f{n}(a): f{(n * 7) % 3000}(a)\n" for n in range(3_000)),
    "long number": f"x = {'9' * 200_000}",
    "another encoding": "# coding: utf-7\nx = 1",
    "modules that import each other": "import ev, second, ev.second, second.ev\nfrom . import ev",
}


@attack("X8", "user")
def test_programs_are_analysed_in_bounded_time(job: Job) -> None:
    for number, program in enumerate(PROGRAMS.values()):
        job.write({f"p{number}/ev.py": program, f"p{number}/second.py": program})
    results = evaluate_all(job, [f"p{number}/ev.py" for number in range(len(PROGRAMS))])
    assert [each["status"] for each in results] == ["errored"] * len(PROGRAMS)


def evaluate_all(job: Job, paths: Sequence[str], **environ: str) -> Sequence[Mapping[str, Any]]:
    """Run programs that do not pass in one process, whose time is limited; return the results."""
    job.configure(*({**CODE_ENTRY, "name": path.replace("/", "-"), "path": path} for path in paths))
    ran = job.run(environ=environ, cpu_seconds=CPU_SECONDS)
    assert ran.code == 3, ran.out + ran.err
    return results_of(ran)


REQUIREMENTS = (
    *("-r /etc/passwd", "-e .", "--find-links=/tmp", "--trusted-host x", "-c x", "--pre"),
    *(
        "--index-url http://127.0.0.1:9/simple",
        "./evil",
        "../evil.whl",
        "/tmp/evil.whl",
        "evil.whl",
    ),
    *(
        "file:///tmp/evil.whl",
        "evil @ file:///tmp/evil.whl",
        "git+ssh://h/x",
        "evil @ git+file:///x",
    ),
    *("evil==1 --config-settings=a=b", "evil==1 --global-option=x", "evil @ ${MY_SECRET}"),
    *("evil==1\\\n--index-url=http://h", "evil==1\u2028-r /etc/passwd", "evil==1\x0c-e ."),
    *("evil; " + "(" * 3_000 + "os_name=='x'" + ")" * 3_000, "evil[" + "a," * 4_000 + "a]"),
)


@attack("X10", "user")
def test_requirements_name_nothing_of_the_machine(job: Job) -> None:
    for number, text in enumerate(REQUIREMENTS):
        job.write({f"p{number}/ev.py": "print('{\"score\": 1}')\n"})
        job.write({f"p{number}/requirements.txt": f"{text}\n"})
    # An index that does not exist: whatever is asked of it is an error that names it.
    environ = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    paths = [f"p{number}/ev.py" for number in range(len(REQUIREMENTS))]
    results = dict(zip(REQUIREMENTS, evaluate_all(job, paths, **environ), strict=True))
    installed = {
        text[:60]: each
        for text, each in results.items()
        if each["status"] != "errored" or "requirements.txt" not in each["reason"]
    }
    assert installed == {}


IMAGES = ("--privileged", "-v/:/host", "--volume=/:/x", "a b", "$(id)", "python:3\n-v/:/x", "../x")


@attack("X11", "user")
def test_image_is_no_option_of_docker(make_job: MakeJob) -> None:
    codes = {}
    for image in IMAGES:
        job = make_job()
        job.write({"ev.py": "print('{\"score\": 1}')\n"})
        job.configure({**CODE_ENTRY, "executor": "docker", "image": image})
        codes[image] = job.run().code
        job.remove()
    assert codes == dict.fromkeys(IMAGES, 2)
