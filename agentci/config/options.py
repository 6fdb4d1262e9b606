"""The options of a run: one table for command line flags, action inputs and documentation."""

from typing import Final

from msgspec import Struct

from agentci.model.values import (
    CALL_SCOPES,
    COMMENT_MODES,
    CONTENT_LIMITS,
    DISPLAY_MODES,
    FAIL_ON_CHOICES,
    GROUP_BY_CHOICES,
    JUNIT_FORMATS,
    MATCH_TYPES,
    OPTIONAL_FORMATS,
)

DEFAULT_RECORDING: Final = "traces/recorded.jsonl"
# Stands for a command that `agentci init` did not find.
COMMAND_PLACEHOLDER: Final = "AGENT_COMMAND"


class Option(Struct, frozen=True):
    """One option of ``agentci run``: ``--NAME`` on the command line, input ``NAME`` of the action.

    Attributes:
        metavar: the placeholder of its value; None makes it a switch (`true` or `false` as an
            input) unless it has ``choices``.
        choices: the allowed values, compared without regard to case.
        default: the value as a user would write it; "" leaves the choice to the config.
        repeats: whether it may be given several times; as an input, one value per line.
        cli_only: whether it is left out of the action's inputs.
        input_only: whether it is left out of the command line.
    """

    name: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    default: str = ""
    repeats: bool = False
    cli_only: bool = False
    input_only: bool = False

    @property
    def is_switch(self) -> bool:
        """Whether the option is on or off and takes no value."""
        return self.metavar is None and not self.choices


OPTIONS: tuple[Option, ...] = (
    Option(
        "record",
        "Command of an agent to record and evaluate; `{input}` is a case's input.",
        metavar="COMMAND",
        input_only=True,
    ),
    Option(
        "cases",
        "Files of cases to record, one per line, as for `agentci record --cases`.",
        metavar="FILE",
        input_only=True,
    ),
    Option(
        "replay",
        "`true` answers the agent from the recording, without a key; `fallback` asks the "
        "model for missing responses.",
        metavar="MODE",
        default="false",
        input_only=True,
    ),
    Option(
        "answer",
        "`stdout` evaluates what the command prints; `model` the model's answer, without warnings.",
        metavar="SOURCE",
        input_only=True,
    ),
    Option(
        "record-to",
        "File for the recorded traces.",
        metavar="FILE",
        default=DEFAULT_RECORDING,
        input_only=True,
    ),
    Option(
        "record-timeout",
        "Time per recorded case (`30s`, `5m`, `none`); default: `5m`, without `cases` `1h`.",
        metavar="TIME",
        input_only=True,
    ),
    Option(
        "redact",
        "Regular expression of text to remove, besides keys.",
        metavar="REGEX",
        repeats=True,
        input_only=True,
    ),
    Option(
        "no-injection",
        "Do not inject telemetry into the agent.",
        default="false",
        input_only=True,
    ),
    Option(
        "traces",
        "Traces, instead of the configs' `traces`.",
        metavar="GLOB",
        repeats=True,
    ),
    Option(
        "results",
        "Result files of other tools, also without a config; instead of the configs' `results`.",
        metavar="GLOB",
        repeats=True,
    ),
    Option(
        "metric",
        "Built-in metric to add, also without a config.",
        metavar="NAME",
        repeats=True,
    ),
    Option(
        "group-by",
        "Whether a case is one trace or a whole conversation.",
        choices=GROUP_BY_CHOICES,
    ),
    Option(
        "eval-set",
        "Eval cases, instead of the configs' `eval_set`.",
        metavar="FILE",
        repeats=True,
    ),
    Option(
        "trace-format",
        "Format of the traces; default: detected.",
        metavar="FORMAT",
    ),
    Option(
        "threshold",
        "Threshold of built-in metrics, from 0 to 1, instead of the configs'.",
        metavar="X",
    ),
    Option(
        "trajectory-match-type",
        "How `tool_trajectory_avg_score` compares calls, instead of the configs' setting.",
        choices=MATCH_TYPES,
    ),
    Option(
        "judge-model",
        "Judge model, instead of the configs'; `PROVIDER/MODEL` if a config has no `judge`.",
        metavar="MODEL",
    ),
    Option("only", "Run only this evaluator.", metavar="NAME", repeats=True),
    Option(
        "case",
        "Check only cases with this id; `*` stands for any characters.",
        metavar="GLOB",
        repeats=True,
        cli_only=True,
    ),
    Option(
        "tag",
        "Check only cases of AgentV's eval files with this tag, of the case or of its file; with "
        "several, those with all of them.",
        metavar="NAME",
        repeats=True,
        cli_only=True,
    ),
    Option(
        "env-allow",
        "Environment variable that configs may name, with `*` as a wildcard; default: in "
        "GitHub Actions no secrets, elsewhere any.",
        metavar="NAME",
        repeats=True,
    ),
    Option(
        "allow-agents",
        "In GitHub Actions, run commands of eval files (`target`) outside the "
        "sandbox; never for pull requests from forks.",
    ),
    Option(
        "evaluator-cache",
        "Folder outside the checkout, as `NAME=DIR`, for `cache_dirs` of evaluators.",
        metavar="NAME=DIR",
        repeats=True,
    ),
    Option(
        "output-dir",
        "Folder for `results.json`, `junit.xml`, `summary.md`, `report.html` and `comment.md`.",
        metavar="DIR",
        default="agentci-results",
    ),
    Option(
        "jobs",
        "Number of parallel checks; default: the number of processors, for `record` 1.",
        metavar="N",
    ),
    Option(
        "shard",
        "Part of the checks to run: `2/5`, or `auto` for that of the job in its matrix.",
        metavar="I/N",
    ),
    Option(
        "matrix-job",
        "Position of the job in its matrix, read by `shard: auto`; do not set it.",
        metavar="I/N",
        default="${{ strategy.job-index }}/${{ strategy.job-total }}",
        input_only=True,
    ),
    Option(
        "github-token",
        "Token for GitHub's API; evaluators never see it.",
        metavar="TOKEN",
        default="${{ github.token }}",
        input_only=True,
    ),
    Option(
        "merge",
        "Reports to merge (files, folders or globs); no checks run.",
        metavar="REPORT",
        repeats=True,
        input_only=True,
    ),
    Option(
        "baseline",
        "`results.json` to compare with, or its folder; `base` finds the base commit's.",
        metavar="REPORT",
    ),
    Option(
        "baseline-artifact",
        "Artifact with `results.json` for `baseline: base`.",
        metavar="NAME",
        default="agentci-results",
    ),
    Option("locked", "Use only remote evaluators and packages of `agentci.lock`."),
    Option(
        "offline",
        "Use only the cache, no network; no agents run.",
    ),
    Option("no-cache", "Fetch remote evaluators and ask for responses again."),
    Option(
        "cache-dir",
        "Cache folder, outside the checkout; default: `~/.cache/agentci`.",
        metavar="DIR",
    ),
    Option(
        "fail-on",
        "What fails the gate: nothing, only errored, or failed and errored checks.",
        choices=FAIL_ON_CHOICES,
        default="failed",
    ),
    Option(
        "annotations",
        "Whether to annotate the pull request.",
        choices=DISPLAY_MODES,
        default="auto",
    ),
    Option(
        "summary",
        "Whether to write the job summary.",
        choices=DISPLAY_MODES,
        default="auto",
    ),
    Option(
        "evaluator-io",
        "Checks whose evaluator input and output `report.html` has.",
        choices=CALL_SCOPES,
        default="failed",
    ),
    Option(
        "content",
        "Text of recorded runs in reports: 8 MiB, worst cases first; everything; or none.",
        choices=CONTENT_LIMITS,
        default="budget",
    ),
    Option(
        "junit-dialect",
        "Which consumers `junit.xml` is written for.",
        choices=JUNIT_FORMATS,
        default="common",
    ),
    Option(
        "formats",
        f"Additional report: `{'`, `'.join(OPTIONAL_FORMATS.values())}`.",
        choices=tuple(OPTIONAL_FORMATS),
        repeats=True,
    ),
    Option(
        "emit-otel",
        "OTLP endpoint for an event per check, without `/v1/logs`; headers: "
        "`OTEL_EXPORTER_OTLP_HEADERS`.",
        metavar="URL",
    ),
    Option(
        "comment",
        "When to comment on the pull request: always, if the result changed, or if the "
        "gate failed.",
        choices=COMMENT_MODES,
        default="never",
    ),
    Option(
        "check-run",
        "Name of a check run with all findings on their lines; default: none.",
        metavar="NAME",
    ),
    Option(
        "comment-template",
        "Template for blocks of the comment and the job summary.",
        metavar="FILE",
    ),
    Option(
        "report-url",
        "URL of `report.html`, for links in comment and summary.",
        metavar="URL",
    ),
    Option(
        "matrix",
        "Matrix values of the job, which distinguish its comment from those of other "
        "jobs; do not set it.",
        metavar="JSON",
        default="${{ toJSON(matrix) }}",
        input_only=True,
    ),
    Option(
        "comment-report",
        "Report of another run to comment on, for forks; no checks run.",
        metavar="REPORT",
        input_only=True,
    ),
    Option("plan", "Show which checks would run (dry run).", cli_only=True),
    Option("quiet", "Print only the result, without progress.", cli_only=True),
    Option("verbose", "Print every check.", cli_only=True),
    Option("open", "Open report.html in a browser.", cli_only=True),
    Option(
        "watch",
        "Evaluate again whenever configs, traces, eval sets or evaluators change; it does not "
        "run the agent.",
        cli_only=True,
    ),
)

# Options that apply to writing a report; `agentci merge` has them, too.
REPORT_OPTIONS: Final = (
    *(
        "baseline",
        "baseline-artifact",
        "offline",
        "cache-dir",
        "output-dir",
        "fail-on",
        "annotations",
        "summary",
        "content",
        "junit-dialect",
        "formats",
        "emit-otel",
        "comment",
        "check-run",
        "comment-template",
        "report-url",
        "quiet",
        "verbose",
    ),
)
