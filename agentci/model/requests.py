"""Requests of evaluators and the responses to them: values that can be compared and cached."""

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct, field

from agentci.model.choices import IsolationMode
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.judges import (
    AggregateVerdict,
    AskModel,
    JudgeConfig,
    JudgePrompt,
    ModelAccess,
    ModelResponse,
    RequiredJudge,
)
from agentci.model.problem import Place
from agentci.model.program import Program, RequiredProgram
from agentci.model.trace import Turn


class CompareEmbeddings(Struct, frozen=True, kw_only=True):
    """Have a model make a vector of each of two texts, and compare these.

    Attributes:
        texts: neither is empty.
        judge: its model is the one that makes vectors.
    """

    texts: tuple[str, str]
    judge: JudgeConfig

    @property
    def prompt(self) -> JudgePrompt:
        """What is sent, as far as tokens are counted by it."""
        return JudgePrompt(system="", user="".join(self.texts), schema=None)


class EmbeddingSimilarity(Struct, frozen=True, kw_only=True):
    """How alike the vectors are.

    Attributes:
        cosine: of the angle between them, -1 to 1.
        response: it again, as it is kept for later runs, with the tokens that it took.
        is_cached: whether it is of an earlier run.
    """

    cosine: float
    response: ModelResponse
    is_cached: bool = False


class EvalsService(Struct, frozen=True, kw_only=True):
    """A server of OpenAI's Evals API.

    Attributes:
        base_url: what its paths begin with, ``/openai/v1`` included.
        key_variable: name of the environment variable with the key; empty where none is needed.
    """

    base_url: str
    key_variable: str = ""


class RequiredService(Struct, frozen=True, kw_only=True):
    """A service that has to be able to grade before anything is judged.

    Attributes:
        name: of the evaluator, for messages.
        place: where a config names the service.
    """

    service: EvalsService
    name: str
    place: Place


class GradeWithService(Struct, frozen=True, kw_only=True):
    """Have a service grade.

    Attributes:
        name: of the run, at the service.
        criterion: the grader, as the API writes it.
        items: what is graded, each with the same members.
        timeout_seconds: from the first request to the last grade.
    """

    service: EvalsService
    name: str
    criterion: JsonObject
    items: tuple[JsonObject, ...]
    timeout_seconds: float


class ServiceGrade(Struct, frozen=True, kw_only=True):
    """What a service says of one item.

    Attributes:
        score: on the scale of the grader.
        details: in the words of the service.
    """

    score: float
    passed: bool
    details: JsonObject


class ServiceGrades(Struct, frozen=True, kw_only=True):
    """The grades of all items, in their order."""

    grades: tuple[ServiceGrade, ...]


# Generous: no honest evaluator comes near them, and none beyond them takes the machine along.
DEFAULT_MEMORY_MB: Final = 4096
DEFAULT_PROCESSES: Final = 512

# The executor that runs programs on this machine, and the one that runs them in images.
LOCAL_EXECUTOR: Final = "local"
DOCKER_EXECUTOR: Final = "docker"


class ExecutionRequest(Struct, frozen=True, kw_only=True):
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
        cached: whether its response may be reused while the files of its folder, its interpreter,
            its command, the values of ``variables`` and ``stdin`` are the same.
    """

    stdin: str = ""
    timeout_seconds: float
    executor: str = LOCAL_EXECUTOR
    network: bool = True
    variables: tuple[str, ...] = ()
    memory_mb: int = DEFAULT_MEMORY_MB
    processes: int = DEFAULT_PROCESSES
    isolation: IsolationMode = "fork"
    image: str = ""
    cached: bool = False


class RunProgram(ExecutionRequest, frozen=True, kw_only=True):
    """Run an evaluator's program.

    Attributes:
        program: where it is; a remote one is made ready before anything is judged.
        key_file: which of ``variables`` names a file, if it is set, that it may read as well.
        calls_function: whether a function of its Python file is called, with stdin as for
            ``execution/child/grading/grade.py``; else the file itself is run.
    """

    program: Program
    key_file: str = ""
    calls_function: bool = False


class RunCommand(ExecutionRequest, frozen=True, kw_only=True):
    """Run a command line, as it stands in a config; in an image there is a copy of ``folder``.

    Attributes:
        command: the program, by path or as found in ``PATH``, and its arguments.
        folder: absolute path of the working directory.
        home: absolute path of the repository that its config is from, where that is not the
            workspace.
        model_access: the model that it may ask, where it may ask any.
    """

    command: tuple[str, ...]
    folder: str
    home: str | None = None
    model_access: ModelAccess | None = None


class ComputeMetric(Struct, frozen=True, kw_only=True):
    """Compute a metric of ours over pairs of turns.

    Attributes:
        metric: name in the table of metrics.
        actual, expected: of any length; pairs are made by index.
    """

    metric: str
    actual: tuple[Turn, ...]
    expected: tuple[Turn, ...]
    options: JsonObject = field(default_factory=dict)


class Skip(Struct, frozen=True, kw_only=True):
    """Do nothing: there is nothing to judge, and this is why."""

    reason: str


class ConstantJudgement(Struct, frozen=True, kw_only=True):
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
    then: "Callable[[tuple[Response, ...]], Task]"


Task: TypeAlias = (
    RunProgram
    | RunCommand
    | AskModel
    | CompareEmbeddings
    | GradeWithService
    | ComputeMetric
    | ConstantJudgement
    | Compose
)
Request: TypeAlias = Task | Skip
# What has to be there before anything is asked for.
Prerequisite: TypeAlias = RequiredProgram | RequiredJudge | RequiredService


class ProgramOutput(Struct, frozen=True, kw_only=True):
    """What a program left behind that ended by itself.

    Attributes:
        stdout: as printed, undecoded.
        stderr: decoded with replacement characters, clipped to its last part.
        exit_code: negative for the number of a signal.
    """

    stdout: bytes
    stderr: str
    exit_code: int


class MetricResult(Struct, frozen=True, kw_only=True):
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


Response: TypeAlias = (
    ProgramOutput
    | AggregateVerdict
    | EmbeddingSimilarity
    | ServiceGrades
    | MetricResult
    | ConstantJudgement
)
