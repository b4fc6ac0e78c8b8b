"""The command line: `endeavour COMMAND [key=value …]`, key=value being Hydra overrides of the command's root.

Turns a command's name into its root in `conf/` and its function, and errors into lines and exit codes: 0 done, 2 the
user's error, 1 any other, 128 + n after signal n.
"""

import errno
import os
import sys
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NoReturn, get_type_hints

from endeavour.commands import COMMANDS, LONG_NAMES
from endeavour.errors import RunError, UserError, kind_and_first_line

USAGE = """\
endeavour COMMAND [key=value …]

  prepare    download or read a corpus, clean it, learn the vocabulary, encode it
  train      prepare, train and evaluate a model; continues a run that was stopped
  evaluate   score a trained run on its test splits, or on other files (also: eval)
  translate  text="…", input=FILE, or standard input, to standard output or output=FILE
  score      how probable a run finds given translations: text="…" translation="…", pairs=[…], or standard input
  filter     pairs=[…] runs="a b": the pairs of a noisy corpus that are worth training on, as two runs see it
  compare    runs="a b": which run is better, tested for significance, and where; also systems=FILE; unusual outputs
  play       a page to watch a trained run translate, question and steer it; POST /translate for programs
  pictures   draw one sentence on its way through a trained run, the pictures of docs/transformer.md
  average    make a run of checkpoints of another one, also while that is being trained: updates=[600,800]
  export     write a trained run for CTranslate2, Hugging Face or Argos: format=…, quantization=…
  sweep      train every combination, model=tiny,small seed=1,2, or search with hydra/sweeper=optuna
  bench      measure training, decoding, preparation and start-up on this machine, beside other toolkits

run=NAME names a trained run, run="a b c" an ensemble; without it the newest finished run is taken.
endeavour COMMAND --help shows every group and key, --cfg job a command's config; -v adds the traceback of an error.
endeavour --install-completion says how a shell completes all this; --version shows which one this is.
"""

# What they did before they were stopped is on disk and is not repeated.
RESUMABLE = {"prepare", "train", "sweep", "filter"}

USER_ERROR = 2
FAILURE = 1
VERBOSE = "-v"
MULTIRUN = {"--multirun", "-m"}
# A full disk, a quota, a file that may not be larger, a disk that fails.
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def main() -> None:
    """Runs one command and ends the process."""
    from endeavour.training.signals import Interrupted

    arguments = [argument for argument in sys.argv[1:] if argument != VERBOSE]
    verbose = VERBOSE in sys.argv[1:] or os.environ.get("HYDRA_FULL_ERROR", "0") == "1"
    name = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    shown = f"endeavour {name}".rstrip()
    try:
        with _unwrapped_interrupt():
            _run(arguments)
        if sys.stdout is not None:  # it was closed from the beginning
            sys.stdout.flush()  # what is still to be written would fail when the process ends
    except UserError as error:
        _fail(shown, str(error), USER_ERROR, verbose=verbose)
    except RunError as error:
        _fail(shown, str(error), FAILURE, verbose=verbose)
    except Interrupted as stop:
        _fail(shown, str(stop), stop.exit_code)
    except KeyboardInterrupt:
        then = "continues from what is on disk" if name in RESUMABLE else "starts again from the beginning"
        if name in ("train", "sweep"):
            then += ", without training.restart"
        _fail(shown, f"stopped; the same command {then}", 130)
    except BrokenPipeError:  # the reader of our output has seen enough, as in `endeavour translate … | head`
        _discard_unwritable_output()
        sys.exit(141)
    except Exception as error:
        _discard_unwritable_output()
        _fail(shown, unexpected(error), FAILURE, verbose=verbose)


@contextmanager
def _unwrapped_interrupt() -> Generator[None]:
    """Raises Ctrl-C as such: a library that then fails to close what it has open raises an error of its own."""
    try:
        yield
    except Exception as error:
        before: BaseException | None = error
        while before := before.__cause__ or before.__context__:
            if isinstance(before, KeyboardInterrupt):
                raise before from None
        raise


def _run(arguments: list[str]) -> None:
    if "--version" in arguments:
        from importlib.metadata import version

        print(f"endeavour {version('endeavour')}")
        return
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", flush=True)
        sys.exit(0 if arguments else USER_ERROR)
    if arguments[0] in ("--install-completion", "--complete"):
        _complete(*arguments)
        return
    name, *overrides = arguments
    if name not in COMMANDS:
        raise UserError(f"no command {name!r}; choose one of {', '.join(COMMANDS)}")
    command = LONG_NAMES.get(name, name)
    if command == "train" and MULTIRUN & set(overrides):
        command = "sweep"
    if "TORCHELASTIC_RUN_ID" in os.environ and command != "train":
        raise UserError("torchrun starts `train` only: all its processes would do the same")
    refuse_secrets(overrides)
    run_command(command, overrides, [Path(sys.argv[0]).name, *sys.argv[1:]])


def run_command(command: str, overrides: Sequence[str], words: Sequence[str]) -> None:
    """Calls the function of that name in `commands/` with the config that the overrides compose.

    `words` are those of the whole command line, for functions that note how they were called.
    """
    function = getattr(import_module(f"endeavour.commands.{command}"), command)
    if command == "sweep":  # in a sweep commas and quotes have the meaning that Hydra gives them
        function([override for override in overrides if override not in MULTIRUN])
        return
    from endeavour.config import load_config, run_hydra, to_config
    from endeavour.overrides import quote_literal

    kinds = get_type_hints(function)
    noted = {"command": words} if "command" in kinds else {}
    root, overrides = COMMANDS[command], [quote_literal(override) for override in overrides]
    if not any(
        override.lstrip("+~").startswith(("-", "hydra.", "hydra/")) or "${hydra:" in override
        for override in overrides
    ):
        function(load_config(root, kinds["config"], overrides), **noted)
        return
    run_hydra(  # --help, --cfg and the like; it composes twice
        root, command, lambda composed: function(to_config(kinds["config"], composed), **noted), overrides
    )


def refuse_secrets(overrides: list[str]) -> None:
    """Raises `UserError` for an override that holds a key or a token: it would be saved, and all could read it."""
    from endeavour.redaction import NAMED_BY_USERS, names_secret, secret_in

    for override in overrides:
        key, equals, _ = override.partition("=")
        named = equals and not key.lstrip("+").startswith(NAMED_BY_USERS) and names_secret(key)
        found = secret_in(override) or ("a secret" if named else None)
        if found:
            which = f"the argument {key.lstrip('+~')}=…" if equals else "an argument"
            raise UserError(
                f"{which} holds {found}: a command line is saved, and every user of this machine can read it\n"
                "set WANDB_API_KEY or HF_TOKEN in the environment instead"
            )


def unexpected(error: Exception) -> str:
    """A line for a disk that takes no more; for any other exception two: what it is, how to see where it is from."""
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        return f"{error.filename or 'the output'} cannot be written ({error.strerror})"
    return f"{kind_and_first_line(error)}\nthis is a defect of endeavour; `endeavour … -v` shows where it happened"


def _complete(option: str, argument: str | None = None, *_: str) -> None:
    from endeavour.completion import complete, script

    print(
        script(argument)
        if option == "--install-completion"
        else "\n".join(complete(argument or "", COMMANDS))
    )


def _discard_unwritable_output() -> None:
    """It would fail once more when the process ends, and change its exit code."""
    if sys.stdout is None:  # it was closed from the beginning
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(command: str, message: str, code: int, *, verbose: bool = False) -> NoReturn:
    from endeavour.redaction import redact

    if verbose:
        print(redact(traceback.format_exc()), file=sys.stderr)
    print(redact(f"{command}: {message}"), file=sys.stderr)
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_initialized():
        # The processes of a run are still connected: a normal exit of this one might wait for the others forever.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
