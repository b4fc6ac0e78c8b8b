"""One module a command: its config, and one function that builds the parts and calls them."""
