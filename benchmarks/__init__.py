"""How fast and how small a run is, against limits and against agentevals."""
