"""One module a command: its config, and one function that builds the parts and calls them."""

# Command → its root in conf/. The function of the same name is in the module of that name.
COMMANDS = {
    "prepare": "train",
    "train": "train",
    "evaluate": "evaluate",
    "eval": "evaluate",
    "translate": "translate",
    "score": "score",
    "filter": "filter",
    "compare": "compare",
    "play": "play",
    "pictures": "pictures",
    "average": "average",
    "export": "export",
    "sweep": "train",
    "bench": "bench",
}
LONG_NAMES = {"eval": "evaluate"}
