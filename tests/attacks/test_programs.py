"""Programs and packages that overload or mislead what reads them outside the sandbox."""

from collections.abc import Mapping

from tests.attacks.attack import attack
from tests.attacks.conftest import MakeJob
from tests.attacks.job import CODE_ENTRY

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
def test_programs_are_analysed_in_bounded_time(make_job: MakeJob) -> None:
    wrong = {}
    for name, program in PROGRAMS.items():
        job = make_job()
        job.write({"ev.py": program, "second.py": program})
        job.configure()
        ran = job.run(cpu_seconds=CPU_SECONDS)
        if ran.code not in (1, 2, 3):
            wrong[name] = (ran.code, (ran.out + ran.err)[-500:])
        job.remove()
    assert wrong == {}


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
def test_requirements_name_nothing_of_the_machine(make_job: MakeJob) -> None:
    installed = {}
    for text in REQUIREMENTS:
        job = make_job()
        job.write({"ev/ev.py": "print('{\"score\": 1}')\n", "ev/requirements.txt": f"{text}\n"})
        job.configure({**CODE_ENTRY, "path": "ev/ev.py"})
        # An index that does not exist: whatever is asked of it is an error that names it.
        ran = job.run(environ={"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"})
        if ran.code not in (2, 3) or "requirements.txt" not in ran.out:
            installed[text[:60]] = (ran.code, ran.out[:300])
        job.remove()
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
