"""Assertions of AgentV 5 by code in the eval file, by a service, or by similarity to a text."""

import posixpath
from collections.abc import Mapping
from typing import Any, Final, Literal, Self, TypeVar

from msgspec import Struct, field
from pydantic import Field, JsonValue, model_validator

from agentci._util.text.javascript import stringify_json
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentv.agentv_evaluator import (
    AgentvContext,
    AgentvEntry,
    AgentvEvaluator,
    define_agentv_entry,
    make_agentv_identity,
    make_pass_threshold,
    make_required_judge,
)
from agentci.evaluators.agentv.code_judge import DEFAULT_TIMEOUT_SECONDS, CodeJudge
from agentci.evaluators.agentv.findings import (
    Finding,
    PassThreshold,
    extract_candidate_answer,
    find_last_content,
    get_agentv_case,
    get_recorded_run,
    make_agentv_judgement,
)
from agentci.evaluators.agentv.payload import NO_RUN, make_judge_payload, to_camel_case
from agentci.evaluators.evaluator import TOOL_CALLS, Definition, Facts, define_command
from agentci.evaluators.fields import RepeatableEntry, Share, StrictModel, Text, optional
from agentci.evaluators.judge_config import VARIABLE_PLACEHOLDER, TargetJudgeSpec, define_judge
from agentci.evaluators.program_output import describe_exit, parse_output
from agentci.model.case import AgentvCase, Case, Expectation
from agentci.model.judges import RequiredJudge
from agentci.model.requests import (
    FIXED_TIMEOUT,
    CompareEmbeddings,
    Compose,
    ConstantJudgement,
    EmbeddingSimilarity,
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    ProgramOutput,
    Response,
    RunCommand,
    Task,
)
from agentci.model.trace import Transcript
from agentci.model.values import Json, JsonObject, replace

# Prints a result as an object: of a boolean, its verdict; of a number, the score.
PYTHON_PROGRAM: Final = """import json, sys
payload, code = json.load(sys.stdin), sys.argv[1][1:]
lines = code.split("\\n")
body = ["return " + code] if len(lines) == 1 else lines
scope = {}
exec("def main(output, context):\\n" + "\\n".join("    " + line for line in body), scope)
result = scope["main"](payload["output"], payload["context"])
if isinstance(result, bool):
    result = {"pass": result}
elif isinstance(result, (int, float)):
    result = {"score": result}
print(json.dumps(result))
"""
JAVASCRIPT_PROGRAM: Final = """const payload = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const code = process.argv[1].trim().replace(/;+\\s*$/, '');
const end = code.lastIndexOf(';');
const body = code.includes('\\n') || /\\breturn\\b/.test(code) ? code
  : /^(const|let|var)\\s/.test(code) && end >= 0
  ? code.slice(0, end + 1) + ' return ' + code.slice(end + 1) : 'return ' + code;
Promise.resolve(new Function('output', 'context', body)(payload.output, payload.context))
  .then((result) => {
    if (typeof result === 'boolean') result = { pass: result };
    if (typeof result === 'number') result = { score: result };
    console.log(JSON.stringify(result ?? null));
  })
  .catch((error) => { console.error(error); process.exitCode = 1; });
"""
WEBHOOK_PROGRAM: Final = """import json, sys, urllib.request
request = urllib.request.Request(
    sys.argv[1].strip(), sys.stdin.buffer.read(), {"content-type": "application/json"}
)
with urllib.request.urlopen(request) as response:
    result = json.load(response)
if isinstance(result, bool):
    result = {"pass": result}
elif isinstance(result, (int, float)):
    result = {"score": result}
print(json.dumps(result))
"""
WEBHOOK: Final = "webhook"
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "python": ("python3", "-c", PYTHON_PROGRAM),
    "javascript": ("node", "-e", JAVASCRIPT_PROGRAM),
    WEBHOOK: ("python3", "-c", WEBHOOK_PROGRAM),
}
# Fields of a code judge's input that the code reads in `context`.
CONTEXT_FIELDS: Final = (
    *("criteria", "expected_output", "input", "metadata", "trace", "token_usage", "cost_usd"),
    *("duration_ms", "file_changes", "workspace_path"),
)
# Fields whose names are not AgentV's: arguments, results, and counts by tool.
FOREIGN_FIELDS: Final = ("input", "output", "content", "metadata", "tool_calls", "tool_durations")
DEFAULT_SIMILARITY: Final = 0.75
NO_EMBEDDINGS: Final = (
    "`similar` needs `config.embedding_provider` with `base_url` and `model`, or a `judge` with "
    "`embedding_model`"
)


class InlineCode(CodeJudge, frozen=True, kw_only=True):
    """Code in the eval file, which reads the answer and the case, or a service that does.

    Attributes:
        camel_case: whether the names in ``context`` are camelCase.
        context_config: the ``config`` in ``context``; empty if there is none.
    """

    camel_case: bool = False
    context_config: JsonObject = field(default_factory=dict)

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return what the code gets of the case."""
        return self._make_input(get_agentv_case(expectation), NO_RUN)

    def ask(self, case: Case) -> RunCommand:
        """Run the code on the case and its run."""
        agentv_case, transcript = get_recorded_run(case)
        command = self.make_command(stringify_json(self._make_input(agentv_case, transcript)))
        if transcript.tool_calls_recorded:
            return command
        return replace(command, unrecorded=(TOOL_CALLS,))

    def _make_input(self, agentv_case: AgentvCase, transcript: Transcript) -> JsonObject:
        payload = make_judge_payload(agentv_case, transcript, None, "v4")
        fields: dict[str, Json] = {name: payload[name] for name in CONTEXT_FIELDS}
        if not transcript.tool_calls_recorded and self.identity.type == WEBHOOK:
            fields["trace"] = None  # whether the service reads tool calls is not known
        context: dict[str, Any] = _convert_names(fields) if self.camel_case else fields  # type: ignore[assignment]
        own = {"config": self.context_config} if self.context_config else {}
        return {"output": payload["output"], "context": {**context, **own}}


def _convert_names(value: Json) -> Json:
    """Convert the names of AgentV's own fields to camelCase."""
    match value:
        case Mapping():
            return {
                to_camel_case(name): each
                if name in FOREIGN_FIELDS and isinstance(each, Mapping)
                else _convert_names(each)
                for name, each in value.items()
            }
        case list():
            return [_convert_names(each) for each in value]
        case _:
            return value


class InlineEntry(RepeatableEntry, AgentvEntry):
    """Code that evaluates the answer."""

    type: Literal["python", "javascript", "webhook"] = Field(description="The language.")
    value: Text = Field(
        description="An expression or the body of a function of `output` and `context`, which "
        "returns a boolean, a score or an object with `pass`, `score` and `reason`; for `webhook` "
        "the URL of a service that returns one."
    )
    threshold: Share | None = optional("Alias of `min_score`.")
    config: dict[str, JsonValue] = optional("The code reads it as `context.config`.", default={})


def build_inline(entry: InlineEntry, context: AgentvContext) -> InlineCode:
    """Make the evaluator."""
    entry = _use_threshold(entry)
    return InlineCode(
        identity=make_agentv_identity(entry, context),
        definition=define_agentv_entry(entry, context),
        run=RunCommand(
            # The space marks it as code, which is searched for reads of what was not recorded.
            command=(*COMMANDS[entry.type], f" {entry.value}"),
            folder=context.folder(None),
            home=context.home,
            timeout_seconds=DEFAULT_TIMEOUT_SECONDS,
            timeout_hint=FIXED_TIMEOUT,
            isolation="spawn",
        ),
        threshold=make_pass_threshold(entry, context),
        wire="v4",
        prefers_assertions=True,
        camel_case=entry.type == "javascript",
        context_config=entry.config,
    )


# Prints what the transforms make of the output, one after the other: each is a word "code" or
# "file", then the code or the path, then the name of the function in the file.
TRANSFORM_PROGRAM: Final = """const path = require('path'), url = require('url');
const payload = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const find = async (kind, code, name) => {
  if (kind === 'code')
    return new Function('output', 'context', code.includes('\\n') ? code : `return ${code}`);
  const loaded = await import(url.pathToFileURL(path.resolve(code)).href);
  const found = name ? loaded[name] ?? loaded.default?.[name] : loaded.default ?? loaded;
  if (typeof found !== 'function')
    throw new Error(`${code} exports no function ${name || 'as default'}`);
  return found;
};
(async () => {
  let value = payload.output;
  const steps = process.argv.slice(1);
  for (let at = 0; at < steps.length; at += 3) {
    const transform = await find(steps[at], steps[at + 1].trim(), steps[at + 2].trim());
    value = await transform(value, payload.context);
    if (value === undefined || value === null) throw new Error('the function returned nothing');
  }
  console.log(JSON.stringify({ value }));
})().catch((error) => { console.error(error.message ?? error); process.exitCode = 1; });
"""
FILE_PREFIX: Final = "file://"
TRANSFORM_ENDINGS: Final = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")


class TransformSpec(StrictModel):
    """Functions in JavaScript that change the output before it is evaluated."""

    steps: list[Text] = Field(description="Code, or `file://PATH:FUNCTION`, in their order.")
    vars: dict[str, JsonValue] = optional("Variables that they read.", default={})


class TransformedEvaluator(Struct, frozen=True, kw_only=True):
    """An evaluator of what a program makes of the output.

    Attributes:
        variables: those of the case.
    """

    evaluator: AgentvEvaluator
    run: RunCommand
    variables: JsonObject
    identity: EvaluatorIdentity

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """The prerequisites of the evaluator."""
        return self.evaluator.needs

    @property
    def definition(self) -> Definition:
        """The definition of the evaluator, with the program."""
        command = self.run.command[len(TRANSFORM_COMMAND) :]
        steps = define_command(command, folder=self.run.folder, home=self.run.home)
        return {**self.evaluator.definition, "transform": steps}

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return what the program and the evaluator read of the case."""
        metadata = get_agentv_case(expectation).metadata
        return [metadata, self.variables, self.evaluator.read_expectation(expectation)]

    def ask(self, case: Case) -> Compose:
        """Run the program, then have the evaluator score what it printed."""
        agentv_case, transcript = get_recorded_run(case)
        context = {"vars": self.variables, "metadata": agentv_case.metadata}
        payload = {"output": find_last_content(transcript), "context": context}
        command = replace(self.run, stdin=stringify_json(payload))

        def then(responses: tuple[Response, ...]) -> Task:
            changed = replace(transcript, answer=self._read_output(responses[0]))
            return self.evaluator.ask(replace(case, transcript=changed))

        return Compose(parts=((self.identity.name, command),), then=then)

    def read(self, response: Response) -> Judgement:
        """Return the evaluator's judgement."""
        return self.evaluator.read(response)

    def _read_output(self, response: Response) -> str:
        """The changed output.

        Raises:
            EvaluatorError: the program failed.
        """
        if not isinstance(response, ProgramOutput):
            raise TypeError(f"expected the output of a command, got {type(response).__name__}")
        subject = f"the `transform` of `{self.identity.name}`"
        if response.exit_code != 0:
            ended = describe_exit(response, network=self.run.network, in_image=False)
            raise EvaluatorError(f"{subject} {ended}")
        try:
            printed = parse_output(response.stdout)
        except EvaluatorError as error:
            raise EvaluatorError(f"{subject} printed something else: {error}") from None
        value = printed.get("value")
        return value if isinstance(value, str) else stringify_json(value, indent=2)


TRANSFORM_COMMAND: Final = ("node", "-e", TRANSFORM_PROGRAM)


def build_transformed(
    evaluator: AgentvEvaluator, spec: TransformSpec, context: AgentvContext
) -> TransformedEvaluator:
    """Make the evaluator of what ``spec`` makes of the output.

    Raises:
        InputError: a step names a file that is missing or not JavaScript or TypeScript.
    """
    words = (word for step in spec.steps for word in _split_step(step.strip(), context))
    return TransformedEvaluator(
        evaluator=evaluator,
        run=RunCommand(
            command=(*TRANSFORM_COMMAND, *words),
            folder=context.folder(None),
            home=context.home,
            timeout_seconds=DEFAULT_TIMEOUT_SECONDS,
            timeout_hint=FIXED_TIMEOUT,
            isolation="spawn",
        ),
        variables=spec.vars,
        identity=evaluator.identity,
    )


def _split_step(step: str, context: AgentvContext) -> tuple[str, str, str]:
    """The kind, the code or the path, and the name of the function, which may be a space."""
    if not step.startswith(FILE_PREFIX):
        return "code", f" {step}", " "  # the space marks it as code
    named = step.removeprefix(FILE_PREFIX)
    path, _, function = named.rpartition(":") if ":" in named else (named, "", "")
    place = context.find_place("transform")
    if not path.endswith(TRANSFORM_ENDINGS):
        message = f"`transform` names {path}, which is not a file in JavaScript or TypeScript"
        raise InputError.from_message(message, place=place)
    found = context.templates.files.path(path, place)
    return "file", posixpath.relpath(found, context.folder(None)), function or " "


class Similarity(Struct, frozen=True, kw_only=True):
    """The cosine of the embeddings of the answer and a text, from 0 (opposite) to 1 (equal)."""

    identity: EvaluatorIdentity
    definition: Definition
    text: str
    model: RequiredJudge
    threshold: PassThreshold

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """The embedding model."""
        return (self.model,)

    def read_expectation(self, _: Expectation) -> Facts:
        """Read nothing of the case."""
        return None

    def ask(self, case: Case) -> CompareEmbeddings | ConstantJudgement:
        """Have the embeddings compared; an empty answer resembles nothing."""
        answer = extract_candidate_answer(get_recorded_run(case)[1])
        if not answer:
            finding = Finding(score=0.0, misses=("the answer is empty",))
            return ConstantJudgement(judgement=make_agentv_judgement(finding, self.threshold))
        return CompareEmbeddings(texts=(self.text, answer), judge=self.model.judge)

    def read(self, response: Response) -> Judgement:
        """Make a judgement from the cosine."""
        if isinstance(response, ConstantJudgement):
            return response.judgement
        if not isinstance(response, EmbeddingSimilarity):
            raise TypeError(f"expected a similarity, got {type(response).__name__}")
        score = min(max((response.cosine + 1) / 2, 0.0), 1.0)
        line = f"similarity {score:.3f} (at least {self.threshold.score:g})"
        passed = score >= self.threshold.score
        finding = Finding(
            score=score,
            hits=(line,) if passed else (),
            misses=() if passed else (line,),
            details={"metric": "cosine", "cosine": response.cosine},
        )
        return make_agentv_judgement(finding, self.threshold)


class SimilarEntry(RepeatableEntry, AgentvEntry):
    """The similarity of the answer and a text, by embeddings."""

    type: Literal["similar"] = Field(description="Similarity to a text, by embeddings.")
    value: Text = Field(description="The text that the answer should resemble.")
    threshold: Share | None = optional(f"Alias of `min_score`; by default {DEFAULT_SIMILARITY:g}.")
    provider: Text | dict[str, JsonValue] | None = optional(
        "The service: `base_url`, `model`, `api_key`, as in `config.embedding_provider`."
    )
    config: dict[str, JsonValue] = optional(
        "`embedding_provider`: `base_url` of a service with OpenAI's API, `model`, and `api_key`, "
        "a variable. By default the `embedding_model` of `judge`.",
        default={},
    )

    @model_validator(mode="after")
    def _check_api_key(self) -> Self:
        key = _find_service(self).get("api_key")
        if key is not None and not (
            isinstance(key, str) and VARIABLE_PLACEHOLDER.fullmatch(key.strip())
        ):
            raise ValueError("`api_key` must name a variable, such as {{ env.OPENAI_API_KEY }}")
        return self


def _find_service(entry: SimilarEntry) -> Mapping[str, Any]:
    """The settings of the embedding service; empty if there are none."""
    own = entry.config.get("embedding_provider")
    found = own if own is not None else entry.provider
    return found if isinstance(found, Mapping) else entry.config


def build_similar(entry: SimilarEntry, context: AgentvContext) -> Similarity:
    """Make the evaluator.

    Raises:
        InputError: no judge is configured.
    """
    entry = _use_threshold(entry)
    if entry.min_score is None:
        entry = entry.model_copy(update={"min_score": DEFAULT_SIMILARITY})
    required = make_required_judge(entry.name, _make_embedding_spec(entry, context), context)
    settings = required.judge.settings
    settings = replace(
        settings, model=settings.embedding_model, embedding_model="", output_tokens=0
    )
    required = replace(required, judge=replace(required.judge, settings=settings, samples=1))
    return Similarity(
        identity=make_agentv_identity(entry, context),
        definition=define_agentv_entry(entry, context, judge=define_judge(required.judge)),
        text=entry.value,
        model=required,
        threshold=make_pass_threshold(entry, context),
    )


def _make_embedding_spec(entry: SimilarEntry, context: AgentvContext) -> TargetJudgeSpec | None:
    """The service of the entry; None for that of the file's `judge`."""
    service = _find_service(entry)
    if "model" not in service:
        shared = context.judges.shared
        if shared is not None and shared.embedding_model:
            return None
        return TargetJudgeSpec(provider="openai", unavailable=NO_EMBEDDINGS)
    given = service.get("base_url", service.get("endpoint"))
    key = VARIABLE_PLACEHOLDER.fullmatch(str(service.get("api_key", "")).strip())
    fields = {
        "provider": "openai",
        "embedding_model": service["model"],
        **({"base_url": given} if given else {}),
        **({"api_key_env": key[1] or key[2]} if key else {}),
    }
    return TargetJudgeSpec.model_validate(fields)


E = TypeVar("E", InlineEntry, SimilarEntry)


def _use_threshold(entry: E) -> E:
    """The entry with its `threshold` as `min_score`, unless it has one."""
    if entry.threshold is None or entry.min_score is not None:
        return entry
    return entry.model_copy(update={"min_score": entry.threshold})
