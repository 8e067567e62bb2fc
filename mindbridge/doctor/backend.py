"""Whether an agent's program is there. Nothing of it is run or imported."""

from collections.abc import Sequence

from mindbridge.config.faults import Fault, dotted
from mindbridge.config.schema import Backend, CommandBackend, DemoBackend, PythonBackend
from mindbridge.doctor.findings import Finding, Status
from mindbridge.ids import AgentName


def backend_check(agent: AgentName, backend: Backend, faults: Sequence[Fault]) -> Finding:
    """Tells of an agent's backend.

    Args:
        agent: whose it is.
        backend: as it is configured.
        faults: what the configuration names and is not there, of any agent.
    """
    place = f"{dotted(('agents', agent, 'backend'))}."
    fault = next((each for each in faults if each.path.startswith(place)), None)
    if fault is not None:
        # A fault's message has two parts: what is wrong, what would be right.
        wrong, _, right = fault.message.partition(", ")
        return Finding("backend", agent, Status.FAIL, f"{fault.path} {wrong}", f"it {right} (line {fault.line})")
    return Finding("backend", agent, Status.OK, _in_words(backend))


def _in_words(backend: Backend) -> str:
    match backend:
        case CommandBackend():
            return f"the program {backend.command[0]} is there"
        case PythonBackend():
            return f"the module of {backend.python} is there"
        case DemoBackend():
            return "demo, which is built in"
