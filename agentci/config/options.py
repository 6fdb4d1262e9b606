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
        help="Recordings to judge, from the working directory; replaces `traces` of configs.",
    ),
    Option(
        name="metric",
        metavar="NAME",
        repeats=True,
        help="Built-in metric to judge by: alone, or beside the configs that are named.",
    ),
    Option(
        name="group-by",
        choices=GROUP_BY_CHOICES,
        help="Whether a case is one trace or all traces of a conversation.",
    ),
    Option(
        name="eval-set", metavar="FILE", help="Golden eval set; replaces `eval_set` of configs."
    ),
    Option(
        name="trace-format",
        metavar="FORMAT",
        help="Format of the recordings: `auto`, `jaeger-json` or `otlp-json`.",
    ),
    Option(
        name="threshold",
        metavar="X",
        help="Score from 0 to 1 that built-in metrics have to reach; replaces theirs.",
    ),
    Option(
        name="trajectory-match-type",
        choices=MATCH_TYPES,
        help="How `tool_trajectory_avg_score` compares tool calls; replaces that of configs.",
    ),
    Option(
        name="judge-model",
        metavar="MODEL",
        help="Model that judges; replaces that of configs. `PROVIDER/MODEL` where a config has no "
        "`judge`.",
    ),
    Option(
        name="only",
        metavar="NAME",
        repeats=True,
        help="Evaluator to run; all others are left out.",
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
        help="Checks judged at the same time; by default as many as there are processors.",
    ),
    Option(
        name="shard",
        metavar="I/N",
        help="Part of the checks to judge, `2/5` the second of five; `auto`, in a workflow, takes "
        "the job's place in its matrix. See `merge`.",
    ),
    Option(
        name="matrix-job",
        metavar="I/N",
        default="${{ strategy.job-index }}/${{ strategy.job-total }}",
        input_only=True,
        help="The job's place in its matrix, which `shard: auto` reads; not to be set.",
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
        help="Reports to merge, instead of judging, of all shards of a run or of whole runs of "
        "different configs: `results.json`, folders or "
        "globs.",
    ),
    Option(
        name="baseline",
        metavar="REPORT",
        help="Earlier `results.json`, or the folder that has it, to compare this run with; `base` "
        "takes that of the base commit from the cache or from an earlier run of the workflow.",
    ),
    Option(
        name="baseline-artifact",
        metavar="NAME",
        default="agentci-results",
        help="Artifact that a workflow keeps `results.json` in, for `baseline: base`; each job of "
        "a matrix needs one of its own.",
    ),
    Option(
        name="locked",
        help="Take remote evaluators and packages from `agentci.lock` alone.",
    ),
    Option(
        name="offline",
        help="Take remote evaluators and replies of models from the cache alone, run no agents, "
        "and ask nothing of the network.",
    ),
    Option(
        name="no-cache",
        help="Fetch remote evaluators, run all programs and ask all models anew, whatever the "
        "cache has.",
    ),
    Option(
        name="cache-dir",
        metavar="DIR",
        help="Folder of the cache; by default `.agentci/cache` of the workspace in a workflow, "
        "else `~/.cache/agentci`.",
    ),
    Option(
        name="fail-on",
        choices=FAIL_ON_CHOICES,
        default="failed",
        help="What shuts the gate: nothing, only checks that could not be judged, or both.",
    ),
    Option(
        name="annotations",
        choices=DISPLAY_MODES,
        default="auto",
        help="Whether findings are shown on their lines in the pull request.",
    ),
    Option(
        name="summary",
        choices=DISPLAY_MODES,
        default="auto",
        help="Whether the summary is shown on the page of the workflow run.",
    ),
    Option(
        name="exchanges",
        choices=CALL_SCOPES,
        default="failed",
        help="Of which checks `report.html` has what their evaluators were sent and what came "
        "back, to the byte: of those that did not pass, of all, or of none.",
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
        help="When the pull request gets a comment, which later runs change in place: after every "
        "run, when the result changed, or when the gate is shut.",
    ),
    Option(
        name="check-run",
        metavar="NAME",
        help="Name of a check run with all findings on their lines; by default none is made.",
    ),
    Option(
        name="matrix",
        metavar="JSON",
        default="${{ toJSON(matrix) }}",
        input_only=True,
        help="The job's leg of its matrix, which has a comment of its own; not to be set.",
    ),
    Option(
        name="comment-report",
        metavar="REPORT",
        input_only=True,
        help="Report of another run, `results.json` or its folder, to comment on instead of "
        "judging: for pull requests from forks.",
    ),
    Option(name="plan", cli_only=True, help="Say what would be judged, and judge nothing."),
    Option(
        name="quiet", cli_only=True, help="Print no progress, and of a report the verdict alone."
    ),
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
