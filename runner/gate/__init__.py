"""The accepted baseline, the rules that a run is held to, and whether it holds to them."""
