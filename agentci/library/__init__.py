"""Programs from elsewhere: fetched, verified, with their packages, ready to run."""
