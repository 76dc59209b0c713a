"""The confirmation before real orders are sent, or before more of them are allowed."""


def confirm_live(account: str, confirm: str) -> None:
    """Have a person type the name of the account before real orders are sent."""
    from pitboss.core.errors import UserError
    from pitboss.runs.deployments import require_confirmed
    from pitboss.terminal.question import ask, has_terminal

    if not account:
        raise UserError("--mode live needs --account", "`pitboss live accounts list` lists them")
    typed = confirm
    if not confirm and has_terminal():
        typed = ask(f"Orders will be sent to account {account}. Type its name to confirm:")
    require_confirmed(account, typed)
