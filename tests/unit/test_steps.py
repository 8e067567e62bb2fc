"""Every commit, call of an agent and send is a step, at one place each; and that another way is seen."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import mindbridge
from mindbridge.steps import Step

PACKAGE = Path(mindbridge.__file__).parent
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8"))
    for path in PACKAGE.rglob("*.py")
    if path != PACKAGE / "steps.py"
}
DATABASE = "journal/database.py"
SENDING = {"matrix/session.py", "matrix/encryption.py"}
"""The session, which is called within steps, and the client's own `room_send`, which the session calls."""
BETWEEN = {"send", "redact", "reply"}
"""Methods of a session or backend that are called between the two sides of a step only."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def named_step(node: ast.expr | None) -> str | None:
    """`X` where the node is `Step.X`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Step":
        return node.attr
    return None


def calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    """The calls of functions or methods with these names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if name in names:
                yield node


def references(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Where a method in `BETWEEN` of something called session or backend is named."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in BETWEEN:
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name.strip("_") in {"session", "backend"}:
                yield node


def brackets(function: Function) -> Iterator[tuple[str, int, int]]:
    """From `reached(STEP, "before")` to the next `reached(STEP, "after")`: the step, the first and the last line."""
    open_at: dict[str, int] = {}
    for call in sorted(calls(function, "reached"), key=lambda each: each.lineno):
        step, side = call.args
        assert isinstance(side, ast.Constant)
        if side.value == "before":
            open_at[ast.unparse(step)] = call.lineno
        else:
            yield ast.unparse(step), open_at.pop(ast.unparse(step)), call.lineno
    assert open_at == {}, "a step has no other side"


def commits_in(tree: ast.AST) -> Iterator[int]:
    """The lines of SQL that commits, docstrings and all other prose aside, and of calls that do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and re.search(r"(^|;)\s*(COMMIT|END)\b", str(node.value)):
            yield node.lineno
    yield from (call.lineno for call in calls(tree, "commit"))


def faults(name: str, tree: ast.AST) -> list[str]:
    """What a module does beside the steps, each with its line."""
    found = [
        f"{call.lineno}: a transaction without the name of a step"
        for call in calls(tree, "transaction")
        if [named_step(each) for each in call.args] in ([], [None]) or len(call.args) != 1 or call.keywords
    ]
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    covered = [bracket for function in functions for bracket in brackets(function)]
    found += [
        f"{each.lineno}: {each.attr} outside of a step"
        for each in references(tree)
        if not any(first < each.lineno < last for _, first, last in covered)
    ]
    if name != DATABASE:
        found += [f"{line}: a commit" for line in commits_in(tree)]
    if name not in SENDING:
        found += [f"{call.lineno}: nio sends" for call in calls(tree, "room_send", "room_redact")]
    return found


@pytest.mark.parametrize("name", TREES)
def test_module_commits_sends_and_calls_agents_in_steps_only(name: str) -> None:
    assert faults(name, TREES[name]) == []


def test_each_step_is_used_at_one_place() -> None:
    places: Counter[str] = Counter()
    for tree in TREES.values():
        places.update(step for call in calls(tree, "transaction") if (step := named_step(call.args[0])))
        for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
            places.update(step.removeprefix("Step.") for step, _, _ in brackets(function) if step.startswith("Step."))
        # The steps of the sends stand in a table, by kind of delivery.
        for table in (node for node in ast.walk(tree) if isinstance(node, ast.Dict)):
            places.update(step for value in table.values if (step := named_step(value)))
    assert places == dict.fromkeys(Step.__members__, 1)


def test_steps_without_a_name_of_their_own_are_the_commit_and_the_send() -> None:
    unnamed = {
        (name, function.name)
        for name, tree in TREES.items()
        for function in ast.walk(tree)
        if isinstance(function, Function)
        for step, _, _ in brackets(function)
        if step == "step"
    }
    assert unnamed == {(DATABASE, "transaction"), ("bridge/delivery.py", "_send")}


def test_all_that_is_sent_and_every_call_of_an_agent_is_looked_at() -> None:
    seen = Counter((name, node.attr) for name, tree in TREES.items() for node in references(tree))
    delivery = "bridge/delivery.py"
    assert seen == {(delivery, "send"): 1, (delivery, "redact"): 1, ("bridge/turns.py", "reply"): 1}
    assert len(list(commits_in(TREES[DATABASE]))) == 3  # a migration's, a transaction's, a reading's


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("database.transaction()", "1: a transaction without the name of a step"),
        ("database.transaction(step)", "1: a transaction without the name of a step"),
        ("database.transaction(step=Step.ADMIT)", "1: a transaction without the name of a step"),
        ("self._session.send(room)", "1: send outside of a step"),
        ("later(session.redact, room)", "1: redact outside of a step"),
        ("backend.reply(turn)", "1: reply outside of a step"),
        (
            "def send():\n  reached(step, 'before')\n  reached(step, 'after')\n  session.send(room)",
            "4: send outside of a step",
        ),
        ("connection.execute('COMMIT')", "1: a commit"),
        ("connection.executescript('BEGIN; DELETE FROM turns; COMMIT;')", "1: a commit"),
        ("connection.commit()", "1: a commit"),
        ("client.room_send(room)", "1: nio sends"),
    ],
)
def test_another_way_is_seen(code: str, fault: str) -> None:
    assert faults("bridge/intruder.py", ast.parse(code)) == [fault]


def test_step_with_one_side_only_is_seen() -> None:
    with pytest.raises(AssertionError, match="no other side"):
        faults("bridge/intruder.py", ast.parse("def send():\n  reached(step, 'before')\n  session.send(room)"))
