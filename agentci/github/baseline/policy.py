"""Compare the policy of a run with that of the base commit, and apply that of the base.

The base's policy comes from its files: from git, else from GitHub, by the loaders that every run
uses. If they are not available, it comes from the stored results of the base commit.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from agentci._util.text.suggest import shorten_commit
from agentci._util.workspace import Workspace
from agentci.config.discovery import find_configs
from agentci.config.settings import PULL_REQUEST_BASE, Settings
from agentci.errors import InputError, UnreachableError
from agentci.gate.policy_changes import (
    RECORDED_RUNS,
    apply_base_policy,
    compare_fail_on,
    find_policy_changes,
    find_unmet_requirements,
)
from agentci.github.baseline.base_files import BaseFiles, BaseFilesFetcher, NoBaseFilesError
from agentci.github.baseline.cache import read_baseline_report
from agentci.github.baseline.find import NoBaselineError, find_baseline
from agentci.github.baseline.git import open_git_repository
from agentci.github.events import Workflow, find_checked_out_commit, is_before_merge, read_event
from agentci.model.gate import Gate, PolicyComparison
from agentci.model.values import FailOn, replace
from agentci.runner.gate_snapshot import apply_base_settings, make_gate
from agentci.runner.load_configs import load_suite, load_suites, make_overrides
from agentci.runner.load_inputs import find_input_files, load_eval_set, load_suite_dataset
from agentci.runner.plan import plan_suites
from agentci.runner.services import Services
from agentci.runner.suite_files import LoadedSuite

INVALID_BASE: Final = "{config} is not compared: it is invalid in the base commit: {problem}"


class BaseGates(Struct, frozen=True, kw_only=True):
    """The gates of all configs of the base commit.

    Attributes:
        notes: which configs are not among them, and why.
        more_runs: how many more recorded runs the base has than the head, by config, for configs of
            both. Without committed traces, the base has none.
    """

    gates: tuple[Gate, ...]
    notes: tuple[str, ...] = ()
    more_runs: Mapping[str, int] = field(default_factory=dict)


def load_base_gates(
    workspace: Workspace, head: Sequence[LoadedSuite], settings: Settings, services: Services
) -> BaseGates:
    """Read the configs of the base commit; an invalid one is a note.

    Args:
        workspace: with the files of the base commit, at the same paths.
        head: the suites of the run.
        services: of the run.
    """
    sources = services.sources.for_workspace(workspace.root)
    base = replace(services, workspace=workspace, sources=sources)
    moved = _move_settings(settings, services.workspace, workspace)
    suites, notes = _load_suites(moved, base)
    known = {loaded.suite.file: loaded for loaded in head}
    gates: list[Gate] = []
    more_runs: dict[str, int] = {}
    for loaded in suites:
        config = loaded.suite.file
        try:
            gates.append(_make_gate(loaded, moved, base))
        except InputError as error:
            notes.append(_make_note(config, error))
            continue
        if config in known:
            before = _find_run_files(loaded, moved, base)
            after = _find_run_files(known[config], settings, services)
            more_runs[config] = before.count_changed(after) - after.count_changed(before)
    return BaseGates(gates=tuple(gates), notes=tuple(notes), more_runs=more_runs)


def _move_settings(settings: Settings, head: Workspace, base: Workspace) -> Settings:
    """Return settings in which absolute paths of the workspace are those of the base."""

    def move(path: str) -> str:
        inside = Path(path).is_absolute() and Path(path).is_relative_to(head.root)
        return str(base.root / Path(path).relative_to(head.root)) if inside else path

    return replace(
        settings,
        configs=tuple(map(move, settings.configs)),
        traces=tuple(map(move, settings.traces)),
        results=tuple(map(move, settings.results)),
        eval_sets=tuple(map(move, settings.eval_sets)),
    )


def _load_suites(settings: Settings, services: Services) -> tuple[list[LoadedSuite], list[str]]:
    """Load the configs that exist in the base, and explain those that are invalid."""
    if (settings.metrics or settings.results) and not settings.configs:
        return [*load_suites(settings, services)], []
    suites: list[LoadedSuite] = []
    notes: list[str] = []
    # A config that the base does not have is new.
    paths, _ = find_configs(settings.configs, services.workspace)
    for path in paths:
        try:
            loaded = load_suite(path, make_overrides(settings), services)
        except InputError as error:
            notes.append(_make_note(services.workspace.display_path(path), error))
            continue
        if loaded.suite.evaluators or loaded.suite.has_results:
            suites.append(loaded)
    return suites, notes


def _make_note(config: str, error: InputError) -> str:
    return INVALID_BASE.format(config=config, problem=error.problems[0])


def _make_gate(loaded: LoadedSuite, settings: Settings, services: Services) -> Gate:
    """Make the gate of a suite, without the number of its recorded runs.

    Raises:
        InputError: the eval set or the dataset is invalid.
    """
    carries_runs = not (settings.traces or loaded.suite.traces)
    return make_gate(
        loaded.suite,
        services.workspace,
        eval_set=load_eval_set(loaded, services.workspace, given=settings.eval_sets),
        dataset=load_suite_dataset(loaded, services.workspace, carries_runs=carries_runs),
    )


class _RunFiles(Struct, frozen=True, kw_only=True):
    """The files of the recorded runs of a suite.

    There are none for eval files, whose cases count instead. Often, the agent is run in the
    workflow, and its traces are not committed.

    Attributes:
        sizes: in bytes, by the file as shown to the user.
    """

    loaded: LoadedSuite
    settings: Settings
    services: Services
    sizes: Mapping[str, int]

    def count_changed(self, others: "_RunFiles") -> int:
        """Count the runs in files that ``others`` lacks, or has in another size.

        Eval cases are left out: the runs are only counted.
        """
        root = self.services.workspace.root
        changed = [
            str(root / name) for name, size in self.sizes.items() if others.sizes.get(name) != size
        ]
        if not changed:
            return 0
        settings = replace(self.settings, traces=tuple(changed), eval_sets=())
        suite = self.loaded.suite
        policy = replace(suite.gate, overall=replace(suite.gate.overall, on_empty="allow"))
        suite = replace(
            suite, eval_sets=(), dataset=None, gate=policy, results=(), given_results=()
        )
        loaded = replace(self.loaded, suite=suite, eval_set=None)
        try:
            plan = plan_suites([loaded], settings, self.services)
        except InputError:
            return 0  # the changed files hold no recorded run
        return plan.gates[0].recorded_runs or 0


def _find_run_files(loaded: LoadedSuite, settings: Settings, services: Services) -> _RunFiles:
    workspace = services.workspace
    sizes: dict[str, int] = {}
    if loaded.suite.eval_cases is None:
        with suppress(InputError, OSError):
            for each in find_input_files(loaded, settings, workspace):
                sizes[workspace.display_path(each.path)] = each.path.stat().st_size
    return _RunFiles(loaded=loaded, settings=settings, services=services, sizes=sizes)


NOT_IN_CHECKOUT: Final = (
    "the checkout does not have the base commit (set `baseline: base`, or `fetch-depth: 0`)"
)
SOURCE_NAMES: Final = {"git": "git", "github": "GitHub"}


class BasePolicy(Struct, frozen=True, kw_only=True):
    """The policy of the base commit.

    Attributes:
        where: where it was found, as shown to the user.
        fail_on: the option of the run whose results it was found in.
        unavailable: why it is unknown; empty if it is known.
    """

    where: str
    found: BaseGates = BaseGates(gates=())
    fail_on: FailOn = "failed"
    unavailable: str = ""


class PolicyCheck:
    """The comparison of one run with its base: first ``apply``, then ``compare``.

    Attributes:
        files: fetches the files of the base commit.
    """

    def __init__(
        self,
        settings: Settings,
        services: Services,
        workflow: Workflow,
        files: BaseFilesFetcher,
        *,
        named_gates: tuple[Gate, ...] | None = None,
    ) -> None:
        """Prepare the comparison.

        Args:
            named_gates: of the report that ``baseline`` names; None to read it.
        """
        self._settings = settings
        self._services = services
        self._workflow = workflow
        self.files = files
        self._named_gates = named_gates
        self._base: BasePolicy | None = None
        self._head: dict[str, Gate] = {}

    def apply(self, suites: Sequence[LoadedSuite]) -> tuple[LoadedSuite, ...]:
        """Return the suites, with the base's requirements if its config has ``policy: base``."""
        workspace = self._services.workspace
        self._head = {each.suite.file: make_gate(each.suite, workspace) for each in suites}
        self._base = self._find_base(suites)
        gates = () if self._base is None else self._base.found.gates
        deciding = {gate.config: gate for gate in gates if gate.policy.source == "base"}
        return tuple(
            self._apply_base(each, deciding[each.suite.file])
            if each.suite.file in deciding
            else each
            for each in suites
        )

    def compare(
        self, gates: Sequence[Gate], stored: Sequence[Gate], fail_on: FailOn
    ) -> PolicyComparison | None:
        """Compare the policies; None without a base, and if the run's input is invalid.

        Args:
            gates: of the run.
            stored: of the base commit's own run, with the options of that run; empty if unknown.
            fail_on: the option of the base's run.
        """
        if self._base is None or not gates:
            return None
        own = [
            replace(gate, policy=head.policy, settings=head.settings)
            for gate in gates
            for head in (self._head[gate.config],)
        ]
        found = replace(self._base.found, gates=_count_base_runs(self._base.found, gates))
        comparison = compare_policies(replace(self._base, found=found), own, gates)
        comparison = _add_option_changes(comparison, stored, own, gates)
        changed = compare_fail_on(stored, fail_on, self._settings.fail_on)
        return replace(comparison, loosened=(*comparison.loosened, *changed))

    def _apply_base(self, loaded: LoadedSuite, base: Gate) -> LoadedSuite:
        head = self._head[loaded.suite.file]
        suite = replace(loaded.suite, gate=apply_base_policy(base, head))
        suite = apply_base_settings(suite, base, head)
        return replace(loaded, suite=suite)

    def _find_base(self, suites: Sequence[LoadedSuite]) -> BasePolicy | None:
        """Find the base's policy; None if the run has no base."""
        named, github = self._settings.baseline, self._workflow.context
        if named and named != PULL_REQUEST_BASE:
            return self._read_named(named)
        if github.active and not is_before_merge(github.event):
            return None
        evaluated = find_checked_out_commit(self._services.workspace, github)
        if not named:
            return self._find_in_git(evaluated, suites) if github.active else None
        try:
            files = self.files.fetch_base(evaluated)
        except NoBaseFilesError as error:
            where = (self._settings, self._services, self._workflow)
            return _find_stored(evaluated, *where, why=f"{error}")
        return self._load(files, suites)

    def _read_named(self, named: str) -> BasePolicy:
        if self._named_gates is None:
            return _read_results(named, self._services)
        return BasePolicy(where=named, found=BaseGates(gates=self._named_gates))

    def _load(self, files: BaseFiles, suites: Sequence[LoadedSuite]) -> BasePolicy:
        where = f"{shorten_commit(files.commit)}, {SOURCE_NAMES[files.source]}"
        try:
            found = load_base_gates(files.workspace, suites, self._settings, self._services)
        except InputError as error:
            return BasePolicy(where=where, unavailable=f"{error.problems[0]}")
        return BasePolicy(where=where, found=found)

    def _find_in_git(self, evaluated: str, suites: Sequence[LoadedSuite]) -> BasePolicy:
        """Find the base of a pull request in the checkout's repository, without network access."""
        event = read_event(self._workflow.context)
        others = [f"origin/{event.base_branch}"] if event.base_branch else []
        others += [event.base_sha] if event.base_sha else []
        why = NOT_IN_CHECKOUT
        try:
            base = open_git_repository(self._services).find_merge_base(evaluated, others)
            if base:
                return self._load(self.files.fetch(base), suites)
        except (UnreachableError, NoBaseFilesError) as error:
            why = f"{error}"
        return BasePolicy(where=PULL_REQUEST_BASE, unavailable=why)


def compare_with_results(
    gates: Sequence[Gate],
    commit: str,
    settings: Settings,
    services: Services,
    workflow: Workflow,
) -> PolicyComparison | None:
    """Compare merged runs, which did not compare their policy, with the results of the base.

    Args:
        gates: of the runs.
        commit: of the runs; empty if unknown.
    """
    if settings.baseline != PULL_REQUEST_BASE:
        base = _read_results(settings.baseline, services)
    elif workflow.context.active and not is_before_merge(workflow.context.event):
        return None
    else:
        base = _find_stored(commit, settings, services, workflow)
    # The base's policy can no longer decide, so what it requires is not met.
    compared = replace(compare_policies(base, gates, gates), decided_by_base=())
    changed = compare_fail_on(base.found.gates, base.fail_on, settings.fail_on)
    return replace(compared, loosened=(*compared.loosened, *changed))


def _find_stored(
    evaluated: str, settings: Settings, services: Services, workflow: Workflow, why: str = ""
) -> BasePolicy:
    """Find the base's policy in its stored results.

    Args:
        evaluated: the commit of the run.
        why: why the files of the base are not available.
    """
    try:
        chosen = find_baseline(evaluated, settings, services, workflow)
    except NoBaselineError as error:
        return BasePolicy(where=PULL_REQUEST_BASE, unavailable=why or f"{error}")
    where = f"{shorten_commit(chosen.found.commit)}, {chosen.found.where}"
    if chosen.stale:
        return BasePolicy(where=where, unavailable="; ".join(filter(None, (why, chosen.stale))))
    report = chosen.found.report
    return BasePolicy(
        where=where, found=BaseGates(gates=report.gates), fail_on=report.decision.fail_on
    )


def _read_results(named: str, services: Services) -> BasePolicy:
    try:
        report = read_baseline_report(named, services.workspace)
    except InputError as error:
        return BasePolicy(where=named, unavailable=f"{error.problems[0]}")
    return BasePolicy(
        where=named, found=BaseGates(gates=report.gates), fail_on=report.decision.fail_on
    )


def compare_policies(
    base: BasePolicy, head: Sequence[Gate], evaluated: Sequence[Gate]
) -> PolicyComparison:
    """Compare a run's policy with that of the base.

    Args:
        head: the gates as the run's configs define them.
        evaluated: the gates by which the run was evaluated.
    """
    if base.unavailable:
        return PolicyComparison(
            base=base.where,
            unavailable=base.unavailable,
            required=any(map(_relies_on_base, head)),
        )
    known = {gate.config for gate in evaluated if gate.policy.source == "base"}
    gates = base.found.gates
    return PolicyComparison(
        base=base.where,
        loosened=tuple(find_policy_changes(gates, head)),
        decided_by_base=tuple(
            gate.config for gate in gates if gate.policy.source == "base" and gate.config in known
        ),
        missing=tuple(find_unmet_requirements(gates, evaluated)),
        notes=base.found.notes,
    )


def _add_option_changes(
    comparison: PolicyComparison,
    stored: Sequence[Gate],
    head: Sequence[Gate],
    evaluated: Sequence[Gate],
) -> PolicyComparison:
    """Add what only the options of the run loosen.

    The base's files are read with the options of this run, such as ``--threshold``, ``--only`` and
    the named configs, and so show no change of an option. The base's stored results do.
    """
    known = {(each.config, each.kind, each.subject) for each in comparison.loosened}
    by_options = (
        each
        for each in find_policy_changes(stored, head)
        # Runs that are recorded in the workflow vary in number.
        if each.subject != RECORDED_RUNS and (each.config, each.kind, each.subject) not in known
    )
    missing = (*comparison.missing, *find_unmet_requirements(stored, evaluated))
    return replace(
        comparison,
        loosened=(*comparison.loosened, *by_options),
        missing=tuple(dict.fromkeys(missing)),
    )


def _relies_on_base(gate: Gate) -> bool:
    return gate.policy.source == "base" or gate.policy.on_loosened == "fail"


def _count_base_runs(base: BaseGates, head: Sequence[Gate]) -> tuple[Gate, ...]:
    """Return the base's gates, with the number of recorded runs if it has more than the head."""
    runs = {gate.config: gate.recorded_runs or 0 for gate in head}
    return tuple(
        replace(gate, recorded_runs=runs[gate.config] + more)
        if (more := base.more_runs.get(gate.config, 0)) > 0
        else gate
        for gate in base.gates
    )
