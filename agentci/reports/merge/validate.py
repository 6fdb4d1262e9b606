"""Whether reports are those of one run, all of it, and each of its checks once."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agentci._util.text import truncate
from agentci._util.text.format import count
from agentci._util.text.suggest import quoted, short_commit
from agentci.model.problem import Problem
from agentci.model.result import Provenance
from agentci.reports.merge.part import Part, Piece, pieces_of

MAX_NAMES: Final = 5
MAX_TOLD: Final = 300

SAME_INPUT: Final = "give all shards the same checkout, recordings and options"
LOST: Final = "did its job write a report, and was that uploaded, downloaded and named here?"


def disunity(parts: Sequence[Part]) -> Iterator[Problem]:
    """Say why the reports are not all reports of one run, or of whole runs of other configs."""
    pieces = pieces_of(parts)
    for part in parts:
        if not part.report.complete:
            message = "the run was broken off before all of its checks were judged"
            yield part.problem(message, "run it again")
        if pieces and part.report.portion is None:
            message = "this is the report of a whole run, which goes together with no shards"
            yield part.problem(message, "leave it out, or name it alone")
    yield from _overlaps(parts)
    if pieces:
        model = _model(pieces)
        yield from (_strangeness(each, model) for each in pieces if not _alike(each, model))
        yield from _doubles_and_gaps([each for each in pieces if _alike(each, model)])


def _overlaps(parts: Sequence[Part]) -> Iterator[Problem]:
    """Whole runs that judged by the same config: nobody knows which of them counts."""
    first: dict[str, Part] = {}
    for part in parts:
        for gate in part.report.gates if part.report.portion is None else ():
            other = first.setdefault(gate.config, part)
            if other is not part:
                message = f"{gate.config} was judged in {other.file}, too"
                yield part.problem(message, "name one of the two")


def flaws(parts: Sequence[Part]) -> Iterator[Problem]:
    """Say what contradicts itself in the reports of one run, as no run of ours writes it."""
    for part in parts:
        yield from _strays(part)
    pieces = pieces_of(parts)
    for piece in pieces:
        yield from _lacks(piece)
    yield from _changes(pieces)


def _model(pieces: Sequence[Piece]) -> Piece:
    """One of the largest group of shards that are alike; best of those that judged something."""
    sizes = Counter(_run(piece) for piece in pieces)
    return max(pieces, key=lambda piece: (bool(piece.portion.checks), sizes[_run(piece)]))


def _run(piece: Piece) -> tuple[str, int]:
    return piece.portion.of, piece.portion.shard.total


def _alike(one: Piece, other: Piece) -> bool:
    return (
        _run(one) == _run(other)
        and one.portion.checks == other.portion.checks
        and one.portion.dealt_by == other.portion.dealt_by
        and one.part.report.gates == other.part.report.gates
        and not _are_of_two_commits(one, other)
    )


def _are_of_two_commits(one: Piece, other: Piece) -> bool:
    commits = {one.part.report.commit, other.part.report.commit} - {""}
    return len(commits) > 1


def _strangeness(piece: Piece, model: Piece) -> Problem:
    shard, total = piece.portion.shard, model.portion.shard.total
    if shard.total != total:
        message = f"this is {shard}, where {model.part.file} is one of {total}"
        return piece.part.problem(message, "name the shards of one run alone")
    if _are_of_two_commits(piece, model):
        own, others = (short_commit(each.part.report.commit) for each in (piece, model))
        message = f"{shard} is of the commit {own}, where {model.part.file} is of {others}"
        return piece.part.problem(message, SAME_INPUT)
    errors = [each for each in piece.part.report.problems if each.severity == "error"]
    if errors and not piece.portion.checks:
        told = truncate.short(str(errors[0]), MAX_TOLD)
        return piece.part.problem(f"{shard} judged nothing, its input was wrong: {told}")
    message = f"{shard} had other checks, gates, evaluators or recordings than {model.part.file}"
    return piece.part.problem(message, SAME_INPUT)


def _doubles_and_gaps(pieces: Sequence[Piece]) -> Iterator[Problem]:
    total = pieces[0].portion.shard.total
    files: dict[int, list[Piece]] = {}
    for piece in pieces:
        files.setdefault(piece.index, []).append(piece)
    for first, *others in files.values():
        for other in others:
            message = f"{other.portion.shard} is here again, after {first.part.file}"
            yield other.part.problem(message, "leave one of them out")
    missing = [str(index) for index in range(1, total + 1) if index not in files]
    if missing:
        word, verb = ("shard", "is") if len(missing) == 1 else ("shards", "are")
        yield Problem(message=f"{word} {', '.join(missing)} of {total} {verb} missing", hint=LOST)


def _strays(part: Part) -> Iterator[Problem]:
    """Results that are there twice, belong elsewhere, or to nothing."""
    report, portion = part.report, part.report.portion
    ids = Counter(result.id for result in report.results)
    yield from _listed(part, (each for each, times in ids.items() if times > 1), "there twice")
    configs = {gate.config for gate in report.gates}
    others = {result.config for result in report.results} - configs
    yield from _listed(part, sorted(others), "of a config that has no gate")
    if portion is not None:
        known = set(portion.checks)
        yield from _listed(part, (each for each in ids if each not in known), "of no known check")
        elsewhere = (each for each in ids if each in known and not portion.holds(each))
        yield from _listed(part, elsewhere, f"not of {portion.shard}")


def _listed(part: Part, names: Iterable[str], what: str) -> Iterator[Problem]:
    if found := [*names]:
        shown = ", ".join(truncate.listed([quoted(each) for each in found], MAX_NAMES))
        yield part.problem(f"it has results that are {what}: {shown}")


def _lacks(piece: Piece) -> Iterator[Problem]:
    checks, portion = piece.portion.checks, piece.portion
    if len(set(checks)) != len(checks):
        yield piece.part.problem("it lists a check twice")
    judged = {result.id for result in piece.part.report.results}
    lacking = sum(portion.holds(check) and check not in judged for check in checks)
    if lacking:
        lacks = f"it lacks the results of {count(lacking, 'check')} of {portion.shard}"
        yield piece.part.problem(lacks)


def _changes(pieces: Sequence[Piece]) -> Iterator[Problem]:
    """Evaluators from elsewhere that were not the same in all shards."""
    first: dict[tuple[str, ...], tuple[Provenance, Piece]] = {}
    for piece in pieces:
        for own in piece.part.report.provenance:
            named = (own.config, own.evaluator, own.source, own.repository, own.revision, own.ref)
            before, where = first.setdefault(named, (own, piece))
            if own != before:
                message = (
                    f"{quoted(own.evaluator)} was not the same as in {where.part.file}: "
                    f"commit {quoted(own.commit)}, there {quoted(before.commit)}"
                )
                yield piece.part.problem(message, "pin it, with `agentci lock`")
