"""What a run tells on GitHub itself: a comment on its pull request, a check run on its commit."""
