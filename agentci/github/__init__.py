"""The GitHub workflow: its event, the pull request, comment, check run and baseline."""
