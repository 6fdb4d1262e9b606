"""The options of a run: one table for command line flags, action inputs and documentation."""

from typing import Final

from msgspec import Struct

from agentci.model.choices import (
    CALL_SCOPES,
    COMMENT_MODES,
    DISPLAY_MODES,
    FAIL_ON_CHOICES,
    GROUP_BY_CHOICES,
    JUNIT_FORMATS,
    MATCH_TYPES,
)


class Option(Struct, frozen=True, kw_only=True):
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
        name="traces",
        metavar="GLOB",
        repeats=True,
        help="Traces to evaluate, relative to the working directory; replaces `traces` of "
        "the configs.",
    ),
    Option(
        name="metric",
        metavar="NAME",
        repeats=True,
        help="Built-in metric to evaluate, on its own or in addition to the given configs.",
    ),
    Option(
        name="group-by",
        choices=GROUP_BY_CHOICES,
        help="Whether a case is one trace, or all traces of a conversation.",
    ),
    Option(
        name="eval-set",
        metavar="FILE",
        help="Eval set with the expected answers and tool calls; replaces `eval_set` of the "
        "configs.",
    ),
    Option(
        name="trace-format",
        metavar="FORMAT",
        help="Format of the traces: `auto`, `jaeger-json` or `otlp-json`.",
    ),
    Option(
        name="threshold",
        metavar="X",
        help="Score from 0 to 1 that built-in metrics must reach; replaces their thresholds.",
    ),
    Option(
        name="trajectory-match-type",
        choices=MATCH_TYPES,
        help="How `tool_trajectory_avg_score` compares tool calls; replaces the setting of "
        "the configs.",
    ),
    Option(
        name="judge-model",
        metavar="MODEL",
        help="Judge model; replaces that of the configs. `PROVIDER/MODEL` if a config has no"
        " `judge`.",
    ),
    Option(
        name="only",
        metavar="NAME",
        repeats=True,
        help="Run only this evaluator.",
    ),
    Option(
        name="output-dir",
        metavar="DIR",
        default="agentci-results",
        help="Folder for `results.json`, `junit.xml`, `summary.md`, `report.html` and "
        "`comment.md`.",
    ),
    Option(
        name="jobs",
        metavar="N",
        help="Number of checks to run in parallel; default: the number of processors.",
    ),
    Option(
        name="shard",
        metavar="I/N",
        help="Run one part of the checks: `2/5` is the second of five. `auto` takes the "
        "position of the job in its matrix. See `merge`.",
    ),
    Option(
        name="matrix-job",
        metavar="I/N",
        default="${{ strategy.job-index }}/${{ strategy.job-total }}",
        input_only=True,
        help="Position of the job in its matrix, read by `shard: auto`; do not set it.",
    ),
    Option(
        name="github-token",
        metavar="TOKEN",
        default="${{ github.token }}",
        input_only=True,
        help="Token for GitHub's API; evaluators never see it.",
    ),
    Option(
        name="merge",
        metavar="REPORT",
        repeats=True,
        input_only=True,
        help="Reports to merge instead of running checks: all shards of a run, or whole runs"
        " of different configs. `results.json` files, folders or globs.",
    ),
    Option(
        name="baseline",
        metavar="REPORT",
        help="Earlier `results.json`, or its folder, to compare with; `base` finds the "
        "results of the base commit in the cache or in an earlier run of the workflow.",
    ),
    Option(
        name="baseline-artifact",
        metavar="NAME",
        default="agentci-results",
        help="Artifact in which the workflow keeps `results.json`, for `baseline: base`; "
        "each job of a matrix needs its own.",
    ),
    Option(
        name="locked",
        help="Use only the remote evaluators and packages that `agentci.lock` pins.",
    ),
    Option(
        name="offline",
        help="Use no network: remote evaluators and judge responses come from the cache, and"
        " no agents run.",
    ),
    Option(
        name="no-cache",
        help="Fetch remote evaluators again and do not reuse cached responses.",
    ),
    Option(
        name="cache-dir",
        metavar="DIR",
        help="Cache folder; default: `.agentci/cache` of the workspace in a workflow, else "
        "`~/.cache/agentci`.",
    ),
    Option(
        name="fail-on",
        choices=FAIL_ON_CHOICES,
        default="failed",
        help="What fails the gate: nothing (`never`), only errored checks (`error`), or "
        "failed and errored checks (`failed`).",
    ),
    Option(
        name="annotations",
        choices=DISPLAY_MODES,
        default="auto",
        help="Whether to annotate lines of the pull request.",
    ),
    Option(
        name="summary",
        choices=DISPLAY_MODES,
        default="auto",
        help="Whether to write the job summary of the workflow run.",
    ),
    Option(
        name="evaluator-io",
        choices=CALL_SCOPES,
        default="failed",
        help="Include raw evaluator input and output in `report.html` for failed checks, all "
        "checks, or none.",
    ),
    Option(
        name="junit-dialect",
        choices=JUNIT_FORMATS,
        default="common",
        help="Which consumers `junit.xml` is written for.",
    ),
    Option(
        name="comment",
        choices=COMMENT_MODES,
        default="never",
        help="When to comment on the pull request: after every run, when the result changed,"
        " or when the gate failed. Later runs update the comment.",
    ),
    Option(
        name="check-run",
        metavar="NAME",
        help="Name of a check run that lists all findings on their lines; default: none.",
    ),
    Option(
        name="matrix",
        metavar="JSON",
        default="${{ toJSON(matrix) }}",
        input_only=True,
        help="Matrix values of the job, which distinguish its comment from those of other "
        "jobs; do not set it.",
    ),
    Option(
        name="comment-report",
        metavar="REPORT",
        input_only=True,
        help="Report of another run to comment on instead of running checks, `results.json` "
        "or its folder: for pull requests from forks.",
    ),
    Option(name="plan", cli_only=True, help="Show which checks would run (dry run)."),
    Option(name="quiet", cli_only=True, help="Print only the result, without progress."),
    Option(name="verbose", cli_only=True, help="Print every check."),
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
        "junit-dialect",
        "comment",
        "check-run",
        "quiet",
        "verbose",
    ),
)
