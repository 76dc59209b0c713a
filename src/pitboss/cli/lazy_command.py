"""`LazyCommand`: a command that is imported when it is used, and is listed in the help of its parent without that."""

from cyclopts import App
from cyclopts.command_spec import CommandSpec


class LazyCommand(CommandSpec):
    """A `CommandSpec` whose `help` is only the line in the list of commands; the command keeps its own, longer help."""

    def resolve(self, parent_app: App) -> App:
        """Import the command. The line is dropped first, because a `CommandSpec` replaces the help of its command by it."""
        self.help = None
        return super().resolve(parent_app)


def add_lazy_command(app: App, path: str, name: str, help_line: str | None = None) -> LazyCommand:
    """Register the command at an import path. A line that is not known yet is set before the help is printed."""
    app.command(path, name=name)  # checks that the name is free
    command = app._commands[name] = LazyCommand(path, name, help=help_line)
    return command
