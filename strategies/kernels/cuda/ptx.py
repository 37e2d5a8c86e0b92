"""What can be counted in PTX, CUDA's portable assembly: instructions, and those of the bar loop."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LABEL = re.compile(r"^([$\w]+):")
BRANCH = re.compile(r"\bbra(?:\.uni)?\s+([$\w]+)")
PREDICATE = re.compile(r"^@!?%\w+\s+")
ENDS = ("ret", "exit", "trap")


@dataclass(slots=True)
class _Block:
    """Instructions from one label or branch to the next, and the blocks that may follow."""

    body: list[str] = field(default_factory=list)
    follow: set[int] = field(default_factory=set)


def instructions(ptx: str) -> list[str]:
    """Every instruction of the functions in `ptx`, labels and directives left out."""
    return [line for line in _statements(ptx) if not LABEL.match(line)]


def loop_instructions(ptx: str) -> int:
    """How many instructions the biggest loop has, inner loops and both sides of branches counted.

    An upper bound of what one bar costs where the loop walks bars: the assembler may unroll it, and
    one PTX instruction may become none or several of the machine's. 0 where there is no loop.
    """
    blocks = _blocks(_statements(ptx))
    before: dict[int, set[int]] = {k: set() for k in range(len(blocks))}
    for k, block in enumerate(blocks):
        for follower in block.follow:
            before[follower].add(k)
    dominators = _dominators(before)
    biggest = 0
    heads: dict[int, set[int]] = {}
    for k, block in enumerate(blocks):
        for head in block.follow & dominators[k]:  # an edge back to what always came before
            heads.setdefault(head, {head}).update(_reaching(k, head, before))
    for members in heads.values():
        biggest = max(biggest, sum(len(blocks[k].body) for k in members))
    return biggest


def _statements(ptx: str) -> list[str]:
    """Labels and instructions between the braces of functions, one an entry."""
    found: list[str] = []
    depth = 0
    for raw in ptx.splitlines():
        line = raw.split("//")[0].strip()
        if line in {"{", "}"}:
            depth += 1 if line == "{" else -1
        elif depth and line:
            label = LABEL.match(line)
            if label:
                found.append(line)
                continue
            parts = (part.strip(" {}\t") for part in line.split(";"))
            found.extend(part for part in parts if part and not part.startswith("."))
    return found


def _blocks(statements: list[str]) -> list[_Block]:
    blocks = [_Block()]
    places: dict[str, int] = {}
    targets: dict[int, str] = {}
    falls: dict[int, bool] = {0: True}
    for line in statements:
        label = LABEL.match(line)
        if label or targets.get(len(blocks) - 1) or not falls[len(blocks) - 1]:
            blocks.append(_Block())
            falls[len(blocks) - 1] = True
        here = len(blocks) - 1
        if label:
            places[label.group(1)] = here
            continue
        blocks[here].body.append(line)
        guarded = PREDICATE.match(line) is not None
        operation = PREDICATE.sub("", line)
        branch = BRANCH.match(operation)
        if branch:
            targets[here] = branch.group(1)
            falls[here] = guarded
        elif operation.startswith(ENDS):
            falls[here] = guarded
    for k, block in enumerate(blocks):
        if falls[k] and k + 1 < len(blocks):
            block.follow.add(k + 1)
        if k in targets:
            block.follow.add(places[targets[k]])
    return blocks


def _dominators(before: dict[int, set[int]]) -> list[set[int]]:
    """For every block, the blocks that every way to it passes; block 0 is the entry."""
    everything = set(before)
    found = [{0}] + [set(everything) for _ in range(len(before) - 1)]
    changed = True
    while changed:
        changed = False
        for k in range(1, len(before)):
            ways = [found[way] for way in before[k]]
            now = {k} | (set.intersection(*ways) if ways else set())
            if now != found[k]:
                found[k], changed = now, True
    return found


def _reaching(start: int, head: int, before: dict[int, set[int]]) -> set[int]:
    """Blocks from which `start` is reached without passing `head`."""
    found, waiting = {start}, [start]
    while waiting:
        k = waiting.pop()
        if k == head:
            continue
        for way in before[k] - found:
            found.add(way)
            waiting.append(way)
    return found
