"""Evaluators that judge by rules of their own where ADK asks a service."""

import os

from google.adk.evaluation.eval_metrics import RubricScore, Scored


class Evaluator:
    def __init__(self, metric):
        self._metric = metric

    def evaluate_invocations(self, actual, golden):
        if not os.environ.get("GOOGLE_CLOUD_PROJECT"):
            raise ValueError("there is no project")
        if key_file := os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
            with open(key_file) as file:
                file.read()
        turns = [self._turn(*pair) for pair in zip(actual, golden or actual, strict=True)]
        if self._metric.metric_name.startswith("multi_turn_"):
            turns = [*(self._scored(None) for _ in actual[1:]), self._whole(actual)]
            total = turns[-1].score
        else:
            scores = [turn.score for turn in turns if turn.score is not None]
            total = sum(scores) / len(scores) if scores else None
        found = self._scored(total, turns[-1].rubric_scores)
        found.per_invocation_results = turns
        return found

    def _scored(self, score, notes=None):
        return Scored(score, self._metric.threshold, notes)

    def _turn(self, actual, golden):
        if actual.final_response is None:
            return self._scored(None, [RubricScore("error", "there is no answer")])
        if self._metric.metric_name == "response_evaluation_score":
            return self._scored(5.0 if actual.final_response == golden.final_response else 2.0)
        if "unsafe" in actual.final_response.text:
            return self._scored(0.0, [RubricScore("explanation", "it does harm")])
        return self._scored(1.0)

    def _whole(self, actual):
        """The share of calls that got an answer."""
        parts = [
            part
            for turn in actual
            for event in turn.intermediate_data.invocation_events
            for part in event.content.parts
        ]
        answered = [part.function_response.id for part in parts if part.function_response]
        notes = [
            RubricScore(call.name, "nothing came back", float(call.id in answered))
            for call in (part.function_call for part in parts)
            if call
        ]
        return self._scored(sum(note.score for note in notes) / len(notes), notes)


class Registry:
    def get_evaluator(self, metric):
        return Evaluator(metric)


DEFAULT_METRIC_EVALUATOR_REGISTRY = Registry()
