"""Evaluator types: turn a case into a request, and the response into a judgement."""
