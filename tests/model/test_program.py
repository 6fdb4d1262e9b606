"""The requirement lines that ``agentci.lock`` contains for installers."""

from agentci.model.program import LockedRequirements


def test_requirement_lines_include_all_hashes() -> None:
    locked = LockedRequirements(
        file="requirements.txt",
        sha256="0" * 64,
        packages={"six==1.16.0": ("sha256:aa", "sha256:bb"), "wheel==0.45.1": ()},
    )
    assert locked.requirement_lines == (
        "six==1.16.0 --hash=sha256:aa --hash=sha256:bb",
        "wheel==0.45.1",
    )
