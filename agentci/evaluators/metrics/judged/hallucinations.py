"""Scores how many sentences of the final response are supported by what the agent knew.

The scores are those of ``hallucinations_v1`` of ADK 2.13: a sentence is right if it is supported or
needs no support; the score of a turn is the share of right sentences, and that of a case the mean
over its turns. Sentences are split here, where ADK asks a model, so that they are the same in every
run.
"""

from typing import Final

from agentci._util.text.sentences import split_sentences
from agentci.evaluators.metrics.judged.judged_metric import (
    JudgedTurn,
    JudgedTurnScore,
    check_all_marked,
    final_text,
    format_steps,
)
from agentci.evaluators.prompts.questions import make_question
from agentci.model.judges import AggregateVerdict, ChecklistSchema, JudgePrompt

name: Final = "hallucinations_v1"
needs_expected: Final = False
rubric_type: Final = ""

CORRECT_LABELS: Final = ("supported", "not_applicable")
LABELS: Final = (*CORRECT_LABELS, "unsupported", "contradictory", "disputed")
INSTRUCTIONS: Final = """\
You judge whether what an AI agent said is shown by what it had before it: the user's words, and \
what its tools answered. Label every sentence of its answer, each by its number:
- supported: all that it claims is shown there, in whatever words.
- unsupported: something that it claims is not there.
- contradictory: what is there says otherwise.
- disputed: one part of what is there shows it, another says otherwise.
- not_applicable: it claims nothing about the world: a question, an offer, a greeting, an opinion, \
a warning, what everybody knows, or what the agent says of itself.
Do not judge by what you know yourself."""
TEMPLATE: Final = """\
What the user asked:
{{ question }}

The tools that the agent used, and what they answered:
{{ steps }}

The sentences of its answer:
{{ sentences }}"""


def question(matter: JudgedTurn) -> JudgePrompt | None:
    """Ask about every sentence; None if there is none."""
    found = split_sentences(final_text(matter.turn))
    if not found:
        return None
    values = {
        "question": matter.turn.user_text,
        "steps": format_steps(matter.turn),
        "sentences": "\n".join(f"[{number}] {each}" for number, each in enumerate(found, start=1)),
    }
    return make_question(
        INSTRUCTIONS,
        TEMPLATE,
        values,
        ChecklistSchema(names=_number_sentences(found), kind="label", labels=LABELS),
    )


def grade(ruling: AggregateVerdict, matter: JudgedTurn) -> JudgedTurnScore:
    """Score a turn by the share of sentences that are right."""
    found = split_sentences(final_text(matter.turn))
    numbers = _number_sentences(found)
    check_all_marked(ruling, numbers, "sentence")
    misses = tuple(
        f"{ruling.values[number]}: {sentence}"
        for number, sentence in zip(numbers, found, strict=True)
        if ruling.values[number] not in CORRECT_LABELS
    )
    return JudgedTurnScore(score=1 - len(misses) / len(found), misses=misses)


def _number_sentences(found: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, len(found) + 1))
