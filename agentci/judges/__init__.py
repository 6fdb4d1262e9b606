"""Models that judge: how they are asked, what their replies say, and what that costs."""
