"""What a run tells on GitHub itself: annotations, a comment on its pull request, a check run."""
