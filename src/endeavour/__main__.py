"""`endeavour STAGE key=value …`: names to stage functions, and errors to one or two lines. Nothing else."""

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omegaconf import DictConfig

USAGE = """\
endeavour STAGE [key=value …]

  prepare    obtain a corpus, clean it, learn the vocabulary, encode it
  train      prepare, train and evaluate a model; goes on where it was stopped
  evaluate   score a trained model on the test splits (also: eval)
  translate  text="…", input=FILE, or standard input, to standard output or output=FILE
  sweep      train every combination of listed values, model=tiny,small seed=1,2, and compare

endeavour STAGE --help shows every group and key, --cfg job the config of a command.
"""

STAGES = {
    "prepare": "prepare",
    "train": "train",
    "evaluate": "evaluate",
    "eval": "evaluate",
    "translate": "translate",
    "sweep": "sweep",
}

USER_ERROR = 2

# Their values are text or file names, never Hydra's grammar.
LITERAL_KEYS = ("text", "input", "output")


def main() -> None:
    """Runs one stage and ends the process: 0 done, 2 the user's error, 1 a defect, 128 + n after signal n."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        sys.exit(0 if arguments else USER_ERROR)
    name, *overrides = arguments
    overrides = [quote_literal(override) for override in overrides]
    if name not in STAGES:
        _fail(f"endeavour: no stage {name!r}; choose one of {', '.join(dict.fromkeys(STAGES.values()))}")
    # Hydra would print its own account of an error and exit with 1; told to raise instead, it leaves the
    # wording to us.
    verbose = os.environ.setdefault("HYDRA_FULL_ERROR", "0") == "1"
    os.environ["HYDRA_FULL_ERROR"] = "1"
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from endeavour.errors import UserError
    from endeavour.training.signals import Interrupted

    try:
        if name == "sweep":
            import_module("endeavour.stages.sweep").sweep(overrides)
        else:
            run_stage(STAGES[name], overrides)
    except (UserError, HydraException, OmegaConfBaseException) as error:
        if verbose:
            raise
        _fail(f"endeavour {name}: {_one_line(error)}")
    except Interrupted as stop:
        print(f"endeavour {name}: {stop}", file=sys.stderr)
        sys.exit(stop.exit_code)


def run_stage(stage: str, overrides: list[str]) -> None:
    """Runs the function that bears its stage's name on the config that Hydra composes."""
    from endeavour.config import to_config

    function = getattr(import_module(f"endeavour.stages.{stage}"), stage)
    run_hydra(stage, lambda composed: function(to_config(composed)), overrides)


def run_hydra(stage: str, function: Callable[["DictConfig"], object], overrides: list[str]) -> None:
    """Hands a command line to Hydra, and what it composes to `function`: once, or with --multirun often.

    Raises the first `UserError` of `function`, after all its calls.
    """
    import hydra

    from endeavour.config import config_folder, register_schema
    from endeavour.errors import UserError

    register_schema()
    sys.argv = [f"endeavour {stage}", *overrides]
    failures: list[UserError] = []

    def task(composed: "DictConfig") -> None:
        try:
            function(composed)
        except UserError as error:  # kept from Hydra, which would add lines of its own
            failures.append(error)

    decorate = hydra.main(
        version_base="1.3", config_path=str(config_folder().resolve()), config_name="config"
    )
    decorate(task)()
    if failures:
        raise failures[0]


def quote_literal(override: str) -> str:
    """Text and file names as Hydra takes them literally: its grammar gives commas, brackets and quotes a meaning."""
    key, equals, value = override.partition("=")
    if key not in LITERAL_KEYS or not equals or value == "null":
        return override
    # OmegaConf would resolve ${…}: a backslash before it escapes it, and those that stood there are doubled.
    value = re.sub(r"(\\*)\$\{", lambda match: match[1] * 2 + "\\${", value)
    # In Hydra's quotes a backslash counts only before the quote mark, or where the value ends in it.
    value = re.sub(r"(\\*)('|$)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), value)
    return f"{key}='{value}'"


def _one_line(error: Exception) -> str:
    """An error's own words; of Hydra's and OmegaConf's several lines, those that say what and where."""
    from endeavour.errors import UserError

    if isinstance(error, UserError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = error.__cause__ or error.__context__
    if cause is not None:
        lines += [line.strip() for line in str(cause).splitlines()[:1]]
    key = getattr(error, "full_key", None) or getattr(cause, "full_key", None)
    kept = [
        line
        for line in lines
        if not line.startswith(("full_key:", "object_type", "reference_type", "To append"))
    ]
    text = "; ".join(dict.fromkeys(kept))
    return text if not key or key in text else f"{key}: {text}"


def _fail(message: str) -> None:
    print(message, file=sys.stderr)
    sys.exit(USER_ERROR)


if __name__ == "__main__":
    main()
