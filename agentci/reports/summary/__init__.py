"""The job summary: Markdown on the page of a workflow run."""
