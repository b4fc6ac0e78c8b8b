"""`endeavour STAGE key=value …`: names to stage functions, and errors to one or two lines. Nothing else."""

import os
import re
import sys
from importlib import import_module

USAGE = """\
endeavour STAGE [key=value …]

  prepare    obtain a corpus, clean it, learn the vocabulary, encode it
  train      prepare, train and evaluate a model; goes on where it was stopped
  evaluate   score a trained model on the test splits (also: eval)
  translate  text="…", input=FILE, or standard input, to standard output or output=FILE
  export     write a trained model for CTranslate2 or Hugging Face: format=…, quantization=…
  sweep      train every combination of listed values, model=tiny,small seed=1,2, and compare
  bench      measure training, decoding, preparation and start-up on this machine, beside other toolkits

endeavour STAGE --help shows every group and key, --cfg job the config of a command.
"""

STAGES = {
    "prepare": "prepare",
    "train": "train",
    "evaluate": "evaluate",
    "eval": "evaluate",
    "translate": "translate",
    "export": "export",
    "sweep": "sweep",
    "bench": "bench",
}

USER_ERROR = 2
MULTIRUN = {"--multirun", "-m"}

# Their values are text or file names, never Hydra's grammar.
LITERAL_KEYS = ("text", "input", "output")


def main() -> None:
    """Runs one stage and ends the process: 0 done, 2 the user's error, 1 a defect, 128 + n after signal n."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        sys.exit(0 if arguments else USER_ERROR)
    name, *overrides = arguments
    if name not in STAGES:
        _fail(f"endeavour: no stage {name!r}; choose one of {', '.join(dict.fromkeys(STAGES.values()))}")
    stage = STAGES[name]
    if stage == "train" and MULTIRUN & set(overrides):
        stage = "sweep"
    from endeavour.errors import UserError
    from endeavour.training.signals import Interrupted

    try:
        run_stage(stage, [quote_literal(override) for override in overrides])
    except UserError as error:
        if os.environ.get("HYDRA_FULL_ERROR", "0") == "1":
            raise
        _fail(f"endeavour {name}: {error}")
    except Interrupted as stop:
        print(f"endeavour {name}: {stop}", file=sys.stderr)
        sys.exit(stop.exit_code)
    except KeyboardInterrupt:
        print(f"endeavour {name}: stopped; the same command goes on from what is on disk", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # whoever read our output has seen enough, as in `endeavour translate … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def run_stage(stage: str, overrides: list[str]) -> None:
    """Calls the function that bears its stage's name with the config that the overrides compose."""
    function = getattr(import_module(f"endeavour.stages.{stage}"), stage)
    if stage == "sweep":
        function([override for override in overrides if override not in MULTIRUN])
        return
    from endeavour.config import run_hydra, to_config

    run_hydra(stage, lambda composed: function(to_config(composed)), overrides)


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


def _fail(message: str) -> None:
    print(message, file=sys.stderr)
    sys.exit(USER_ERROR)


if __name__ == "__main__":
    main()
