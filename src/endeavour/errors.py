"""The errors that are foreseen: what a user can put right, and what befalls a run. All others are defects of ours."""


class UserError(ValueError):
    """Something in the user's input, config or files is wrong.

    The message is shown as it is, without a traceback, and the process ends with exit code 2: it says in one
    or two lines what is wrong, where (key, file, line), and what to do.
    """


class RunError(RuntimeError):
    """Something around the run has failed: another of its processes, a disk.

    Shown like a `UserError`, with exit code 1: the same command may well succeed later.
    """
