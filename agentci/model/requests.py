"""Identities of evaluators, their requests (comparable, cacheable), responses, judgements."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from agentci.model import judges
from agentci.model.program import Program, RequiredProgram
from agentci.model.trace import Turn
from agentci.model.values import BetterScores, IsolationMode, JsonObject, Place, RepeatAggregation


class Repetition(Struct, frozen=True, kw_only=True):
    """How often an evaluator runs on each case, for evaluators whose results vary.

    Attributes:
        aggregation: "majority" of the pass/fail results, or "mean" of the scores.
    """

    times: int = 1
    aggregation: RepeatAggregation = "majority"


NO_REPETITION: Final = Repetition()


class EvaluatorIdentity(Struct, frozen=True, kw_only=True):
    """The name of an evaluator and its settings for the gate.

    Attributes:
        name: unique in its config.
        type: the ``type`` of its entry: ``code``, ``builtin``.
        criterion: what a check needs to pass, as text.
        required: False makes it advisory.
        place: its entry in the config.
        needs_expected: whether it needs an eval case to compare with.
        weight: weight of its score in the score of the case.
        repetition: applied by the pipeline, not by the evaluator.
        better: which scores are better, if another tool measured them; ``unknown`` if there is
            neither a threshold nor a verdict, so that the score is only shown and compared.
    """

    name: str
    type: str
    criterion: str
    threshold: float | None
    required: bool
    place: Place
    needs_expected: bool = False
    weight: float = 1.0
    repetition: Repetition = NO_REPETITION
    better: BetterScores = "higher"


# Key in the details of similarity metrics: the numbers, units and negations in which the answer
# differs from the expected one, as text; also in each of the `results` of turns.
CHANGED_FACTS: Final = "changed_facts"
# The same: other words, or another order, in answers without such differences.
CHANGED_WORDS: Final = "changed_words"
# Key in the details of ``no_tool_errors``: results that look like errors, as text, of calls whose
# status is not recorded.
POSSIBLE_ERRORS: Final = "possible_errors"


class Judgement(Struct, frozen=True, kw_only=True):
    """The score of a check, and the reasons for it.

    Attributes:
        score: 0 to 1; None without a score, which is not 0.
        passed: None if the evaluator returned NOT_EVALUATED, which is not a failure.
        reason: why it passed or failed regardless of its score; else None.
        turn_scores: one per turn, as the evaluator returned them; None for a turn it left out.
        hits, misses: what was right and what was wrong, one line each.
        details: further data of the evaluator for the reports.
    """

    score: float | None
    passed: bool | None
    reason: str | None = None
    turn_scores: tuple[float | None, ...] = ()
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str | None = None
    details: JsonObject = field(default_factory=dict)


NO_JUDGEMENT: Final = Judgement(score=None, passed=None)


class CompareEmbeddings(Struct, frozen=True, kw_only=True):
    """Embed two texts with a model and compare the vectors.

    Attributes:
        texts: not empty.
        judge: its embedding model is used.
    """

    texts: tuple[str, str]
    judge: judges.JudgeConfig

    @property
    def prompt(self) -> judges.JudgePrompt:
        """A prompt with the same text, for counting tokens."""
        return judges.JudgePrompt(system="", user="".join(self.texts), schema=None)


class EmbeddingSimilarity(Struct, frozen=True, kw_only=True):
    """The similarity of two embeddings.

    Attributes:
        cosine: cosine similarity, -1 to 1.
        response: the same value as it is cached, with the tokens used.
        is_cached: whether it comes from the cache.
    """

    cosine: float
    response: judges.ModelResponse
    is_cached: bool = False


class EvalsService(Struct, frozen=True, kw_only=True):
    """A server with OpenAI's Evals API.

    Attributes:
        base_url: prefix of its paths, including ``/openai/v1``.
        key_variable: name of the environment variable with the key; empty if none is needed.
    """

    base_url: str
    key_variable: str = ""


class RequiredService(Struct, frozen=True, kw_only=True):
    """A grading service that has to be usable before any evaluation starts.

    Attributes:
        name: of the evaluator, for messages.
        place: where the config names the service.
    """

    service: EvalsService
    name: str
    place: Place


class RequiredVariables(Struct, frozen=True, kw_only=True):
    """Environment variables that a config names for a program.

    Attributes:
        names: of the variables.
        cache_dirs: names of those that hold the path of a folder the program may read.
        name: of the evaluator, for messages.
        place: where the config names them.
    """

    names: tuple[str, ...]
    cache_dirs: tuple[str, ...] = ()
    name: str
    place: Place


class GradeWithService(Struct, frozen=True, kw_only=True):
    """Grade items with a service.

    Attributes:
        name: of the run, at the service.
        criterion: the grader, in the format of the API.
        items: what is graded, each with the same members.
        timeout_seconds: from the first request to the last grade.
    """

    service: EvalsService
    name: str
    criterion: JsonObject
    items: tuple[JsonObject, ...]
    timeout_seconds: float


class ServiceGrade(Struct, frozen=True, kw_only=True):
    """The grade of one item.

    Attributes:
        score: on the scale of the grader.
        details: as returned by the service.
    """

    score: float
    passed: bool
    details: JsonObject


class ServiceGrades(Struct, frozen=True, kw_only=True):
    """The grades of all items, in item order."""

    grades: tuple[ServiceGrade, ...]


# Far above what normal evaluators need; they only protect the machine.
DEFAULT_MEMORY_MB: Final = 4096
DEFAULT_PROCESSES: Final = 512

# The executors that run programs on this machine and in container images.
LOCAL_EXECUTOR: Final = "local"
DOCKER_EXECUTOR: Final = "docker"


# What a recording may leave out of an evaluator's input.
Unrecorded: TypeAlias = Literal["tool calls", "arguments"]


# For programs whose entry has the key, and for the others.
RAISE_TIMEOUT: Final = "raise `timeout` if it needs longer"
FIXED_TIMEOUT: Final = "make it faster: this limit cannot be changed"


class ExecutionRequest(Struct, frozen=True, kw_only=True):
    """Settings shared by all programs that are run.

    Attributes:
        stdin: complete standard input.
        timeout_seconds: wall time, including the start of the process.
        timeout_hint: what to do if the program takes longer.
        executor: name in the table of executors.
        network: whether it may use the network.
        variables: names of environment variables that it may see besides the harmless ones, as the
            config names them.
        cache_dirs: names of variables with the paths of folders that it may read, as the config
            names them.
        memory_mb, processes: memory limit in MiB per process, and limit of processes and threads.
        isolation: whether a Python program may start as a fork, if the executor supports it.
        image: container image that it runs in, with the interpreters and packages of the image;
            empty for this machine.
        cached: whether its response may be reused while the files of its folder, its interpreter,
            its command, the values of ``variables`` and ``stdin`` are the same.
        unrecorded: what the input leaves out because it was not recorded; a program that reads it
            is not run.
    """

    stdin: str = ""
    timeout_seconds: float
    timeout_hint: str = RAISE_TIMEOUT
    executor: str = LOCAL_EXECUTOR
    network: bool = True
    variables: tuple[str, ...] = ()
    cache_dirs: tuple[str, ...] = ()
    memory_mb: int = DEFAULT_MEMORY_MB
    processes: int = DEFAULT_PROCESSES
    isolation: IsolationMode = "fork"
    image: str = ""
    cached: bool = False
    unrecorded: tuple[Unrecorded, ...] = ()


# Keys of entries that change neither a score nor whether it passes, with the names of the fields of
# requests that they become.
KEYS_NOT_AFFECTING_SCORES: Final[Mapping[str, str]] = {
    "required": "required",
    "timeout": "timeout_seconds",
    "timeout_hint": "timeout_hint",
    "memory_mb": "memory_mb",
    "processes": "processes",
    "isolation": "isolation",
    "cache": "cached",
    "allow_source": "allow_source",
    "api_key_env": "key_variable",
    "credential_ref": "credential_ref",
}


class RunProgram(ExecutionRequest, frozen=True, kw_only=True):
    """Run an evaluator's program.

    Attributes:
        program: a remote one is fetched before any evaluation starts.
        own_variables: names of further variables that agentci chose for a program of its own.
        key_file: the one of ``own_variables`` that, if set, names a file that it may also read.
        function: the function of its Python file that is called, with stdin as for
            ``execution/child/programs/call_grader.py``; empty if the file itself is run.
    """

    program: Program
    own_variables: tuple[str, ...] = ()
    key_file: str = ""
    function: str = ""


class RunCommand(ExecutionRequest, frozen=True, kw_only=True):
    """Run a command line from a config; in an image, with a copy of ``folder``.

    Attributes:
        command: the program (a path, or a name in ``PATH``) and its arguments.
        folder: absolute path of the working directory.
        home: absolute path of the repository that its config is from, if that is not the workspace.
        model_access: the model that it may call, if any.
    """

    command: tuple[str, ...]
    folder: str
    home: str | None = None
    model_access: judges.ModelAccess | None = None


class ComputeMetric(Struct, frozen=True, kw_only=True):
    """Compute a built-in metric over pairs of turns.

    Attributes:
        metric: name in the table of metrics.
        actual, expected: of any length, paired by index.
    """

    metric: str
    actual: tuple[Turn, ...]
    expected: tuple[Turn, ...]
    options: JsonObject = field(default_factory=dict)


class Skip(Struct, frozen=True, kw_only=True):
    """Skip the check, for the reason given.

    Attributes:
        expected: whether it cannot run here, as is known, so that it need not evaluate any case.
    """

    reason: str
    expected: bool = False


class ConstantJudgement(Struct, frozen=True, kw_only=True):
    """Return a result that follows from the recorded run without running anything."""

    judgement: Judgement


class Compose(Struct, frozen=True, kw_only=True):
    """Run several tasks, then the task that follows from their responses.

    Attributes:
        parts: the first tasks, each with its name for messages.
        then: returns the next task from the responses, in the order of ``parts``; pure. Raises
            EvaluatorError if a response breaks the protocol.
    """

    parts: "tuple[tuple[str, Task], ...]"
    then: "Callable[[tuple[Response, ...]], Task]"


Task: TypeAlias = (
    RunProgram
    | RunCommand
    | judges.AskModel
    | CompareEmbeddings
    | GradeWithService
    | ComputeMetric
    | ConstantJudgement
    | Compose
)
Request: TypeAlias = Task | Skip
# What has to be available before any request is made.
Prerequisite: TypeAlias = (
    RequiredProgram | judges.RequiredJudge | RequiredService | RequiredVariables
)


class ProgramOutput(Struct, frozen=True, kw_only=True):
    """The output of a program that exited.

    Attributes:
        stdout: as printed, undecoded.
        stderr: decoded with replacement characters, truncated to its last part.
        exit_code: negative for the number of a signal.
    """

    stdout: bytes
    stderr: str
    exit_code: int


class MetricResult(Struct, frozen=True, kw_only=True):
    """The result of a metric.

    Attributes:
        score: 0 to 1, the mean over pairs.
        turn_scores: one per pair; None for one that has nothing to compare.
        misses: the differences found, one line each.
        details: further data for the reports.
    """

    score: float
    turn_scores: tuple[float | None, ...]
    misses: tuple[str, ...] = ()
    details: JsonObject = field(default_factory=dict)


Response: TypeAlias = (
    ProgramOutput
    | judges.AggregateVerdict
    | EmbeddingSimilarity
    | ServiceGrades
    | MetricResult
    | ConstantJudgement
)
