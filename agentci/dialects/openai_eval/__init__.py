"""The grader language of OpenAI's Evals API, graded here: ``type: openai_eval``."""
