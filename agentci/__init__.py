"""The gate for LLM agents: judges recorded agent runs with the evaluators a team already owns."""
