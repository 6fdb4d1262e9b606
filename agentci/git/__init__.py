"""What git knows of the commit that is judged, and of those before it."""
