"""The report for people: Markdown on the page of a workflow run."""
