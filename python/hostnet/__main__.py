"""``python -m hostnet`` is the command ``hostnet``, also where its script is not on the search path of the shell."""

from .cli import main

main()
