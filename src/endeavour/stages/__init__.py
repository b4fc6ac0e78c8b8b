"""One thin file a stage: each builds its parts from the config and calls them."""
