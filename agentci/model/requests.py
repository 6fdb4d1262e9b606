"""What an evaluator asks to be done, and what comes back: values, to be compared and cached."""

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct, field

from agentci.model.choices import Isolation
from agentci.model.embedding import CompareEmbeddings, Likeness
from agentci.model.grading import GradeRemotely, RemoteGrades, WantedService
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.judging import AskModel, ModelAccess, WantedPanel
from agentci.model.program import Program, Wanted
from agentci.model.ruling import Ruling
from agentci.model.trace import Turn

# Generous: no honest evaluator comes near them, and none beyond them takes the machine along.
MEMORY_MB: Final = 4096
PROCESSES: Final = 512

# The executor that runs programs on this machine, and the one that runs them in images.
LOCAL: Final = "local"
DOCKER: Final = "docker"


class Run(Struct, frozen=True, kw_only=True):
    """What is said of every program that is run.

    Attributes:
        stdin: what it reads, all of it, before the end of file.
        timeout_seconds: wall time, start of the process included.
        executor: name in the table of executors.
        network: whether it may use the network.
        variables: names of variables of ours that it may see beside the harmless ones.
        memory_mb, processes: how much it may use: MiB a process, threads included.
        isolation: whether a Python program may begin as a fork, where its executor has that.
        image: what it runs in, with the interpreters and packages of that; empty for this machine.
        cached: whether an earlier reply will do where nothing has changed that it was made from.
    """

    stdin: str = ""
    timeout_seconds: float
    executor: str = LOCAL
    network: bool = True
    variables: tuple[str, ...] = ()
    memory_mb: int = MEMORY_MB
    processes: int = PROCESSES
    isolation: Isolation = "fork"
    image: str = ""
    cached: bool = True


class RunProgram(Run, frozen=True, kw_only=True):
    """Run an evaluator's program.

    Attributes:
        program: where it is; a remote one is made ready before anything is judged.
        key_file: which of ``variables`` names a file, if it is set, that it may read as well.
        grades: whether a function of its Python file is called, as stdin says in the words of
            ``shims/grading/grade.py``; else the file itself is run.
    """

    program: Program
    key_file: str = ""
    grades: bool = False


class RunCommand(Run, frozen=True, kw_only=True):
    """Run a command line, as it stands in a config; in an image there is a copy of ``folder``.

    Attributes:
        command: the program, by path or as found in ``PATH``, and its arguments.
        folder: absolute path of the working directory.
        home: absolute path of the repository that its config is from, where that is not the
            workspace.
        target: the model that it may ask, where it may ask any.
    """

    command: tuple[str, ...]
    folder: str
    home: str | None = None
    target: ModelAccess | None = None


class Measure(Struct, frozen=True, kw_only=True):
    """Compute a metric of ours over pairs of turns.

    Attributes:
        metric: name in the table of metrics.
        actual, golden: of any length; pairs are made by index.
    """

    metric: str
    actual: tuple[Turn, ...]
    golden: tuple[Turn, ...]
    options: JsonObject = field(default_factory=dict)


class Skip(Struct, frozen=True, kw_only=True):
    """Do nothing: there is nothing to judge, and this is why."""

    reason: str


class Settled(Struct, frozen=True, kw_only=True):
    """Do nothing: what is recorded says all, and this is what comes of it."""

    judgement: Judgement


class Compose(Struct, frozen=True, kw_only=True):
    """Do several things, and then what follows from what came back.

    Attributes:
        parts: what is done first, each with the name that messages call it by.
        then: says by the replies, in the order of ``parts``, what is done next; pure. Raises
            EvaluatorError where they are off protocol.
    """

    parts: "tuple[tuple[str, Task], ...]"
    then: "Callable[[tuple[Reply, ...]], Task]"


Task: TypeAlias = (
    RunProgram
    | RunCommand
    | AskModel
    | CompareEmbeddings
    | GradeRemotely
    | Measure
    | Settled
    | Compose
)
Request: TypeAlias = Task | Skip
# What has to be there before anything is asked for.
Need: TypeAlias = Wanted | WantedPanel | WantedService


class ProgramReply(Struct, frozen=True, kw_only=True):
    """What a program left behind that ended by itself.

    Attributes:
        stdout: as printed, undecoded.
        stderr: decoded with replacement characters, clipped to its last part.
        exit_code: negative for the number of a signal.
    """

    stdout: bytes
    stderr: str
    exit_code: int


class Measurement(Struct, frozen=True, kw_only=True):
    """What a metric found.

    Attributes:
        score: 0 to 1, the mean over pairs.
        turn_scores: one a pair.
        misses: what fell short, in words, one line each.
        details: what the reports show beside the score.
    """

    score: float
    turn_scores: tuple[float, ...]
    misses: tuple[str, ...] = ()
    details: JsonObject = field(default_factory=dict)


Reply: TypeAlias = ProgramReply | Ruling | Likeness | RemoteGrades | Measurement | Settled
