"""One module a command: it builds the parts and calls them."""
