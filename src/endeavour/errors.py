"""The one error class for what a user can put right; anything else that is raised is a defect of ours."""


class UserError(ValueError):
    """Something in the user's input, config or files is wrong.

    The message is shown as it is, without a traceback, and the process ends with exit code 2: it says in one
    or two lines what is wrong, where (key, file, line), and what to do.
    """
