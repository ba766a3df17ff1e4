"""`ropeway completion`: the script that teaches a shell to complete Ropeway's commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .helping import examples

_PROGRAM = "ropeway"


@click.command(
    epilog=examples(
        'eval "$(ropeway completion bash)"          # in ~/.bashrc',
        'eval "$(ropeway completion zsh)"           # in ~/.zshrc, after compinit',
        "ropeway completion fish > ~/.config/fish/completions/ropeway.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options and states, and the names of queues from the store.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE").source())
