"""The command line: wrong usage is told with the usage of the command that was meant."""

import pytest

from mindbridge.cli.main import main


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["journal", "status", "--nosuch"], "mindbridge journal status"),
        (["journal", "show", "one", "two"], "mindbridge journal show"),
        (["journal", "show"], "mindbridge journal show"),
        (["journal", "backup", "one", "--json"], "mindbridge journal backup"),
        (["journal", "--nosuch", "status"], "mindbridge journal"),
        (["journal", "nosuch"], "mindbridge journal"),
        (["check", "file.yaml"], "mindbridge check"),
        (["--nosuch", "check"], "mindbridge"),
    ],
)
def test_wrong_usage_shows_the_usage_of_the_command_that_was_meant(
    capsys: pytest.CaptureFixture[str], words: list[str], meant: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)

    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert told.err.startswith(f"usage: {meant} [-")
    assert told.err.splitlines()[-1].startswith(f"{meant}: error: ")
