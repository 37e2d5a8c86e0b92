"""How many blocks of a kernel fit on a multiprocessor, counted from what it uses."""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32  # threads
REGISTERS = 65_536  # of a multiprocessor, on every architecture listed here
REGISTER_UNIT = 256  # registers are handed to a warp in pieces of this many
SHARED_RESERVED = 1_024  # bytes the driver takes of every block's shared memory from sm_80 on


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one multiprocessor of an architecture holds at once."""

    warps: int
    blocks: int
    shared_bytes: int
    shared_unit: int
    shared_reserved: int


def _since_ampere(warps: int, blocks: int, shared_kib: int) -> Limits:
    return Limits(
        warps=warps,
        blocks=blocks,
        shared_bytes=shared_kib << 10,
        shared_unit=128,
        shared_reserved=SHARED_RESERVED,
    )


# CUDA C++ programming guide, "Compute Capabilities", technical specifications
LIMITS = {
    (7, 5): Limits(warps=32, blocks=16, shared_bytes=64 << 10, shared_unit=256, shared_reserved=0),
    (8, 0): _since_ampere(64, 32, 164),
    (8, 6): _since_ampere(48, 16, 100),
    (8, 9): _since_ampere(48, 24, 100),
    (9, 0): _since_ampere(64, 32, 228),
    (10, 0): _since_ampere(64, 32, 228),
    (12, 0): _since_ampere(48, 24, 100),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """What of a multiprocessor a kernel can keep busy.

    blocks    resident on one multiprocessor at once
    fraction  resident warps over the most the architecture holds
    limiter   "registers", "shared memory", "blocks" or "warps": what allows no further block
    """

    blocks: int
    fraction: float
    limiter: str


def occupancy(
    compute_capability: tuple[int, int], *, threads: int, registers: int, shared_bytes: int
) -> Occupancy:
    """Resident blocks of `threads` threads, each thread with so many registers.

    registers     a thread
    shared_bytes  a block, static and dynamic together
    raises        ValueError for an architecture that is not listed and for threads outside 1..1024
    """
    if compute_capability not in LIMITS:
        known = ", ".join(f"sm_{major}{minor}" for major, minor in LIMITS)
        wanted = "sm_{}{}".format(*compute_capability)
        raise ValueError(f"the limits of {wanted} are not known; listed are {known}")
    if not 1 <= threads <= 1024:
        raise ValueError(f"{threads} threads a block are outside 1..1024")
    limits = LIMITS[compute_capability]
    warps = -(-threads // WARP)
    rounded = -(-max(registers, 1) * WARP // REGISTER_UNIT) * REGISTER_UNIT
    # A multiprocessor is four partitions, each with a quarter of the registers.
    register_warps = 4 * (REGISTERS // 4 // rounded)
    shared = -(-(shared_bytes + limits.shared_reserved) // limits.shared_unit) * limits.shared_unit
    fits = {
        "warps": limits.warps // warps,
        "blocks": limits.blocks,
        "registers": register_warps // warps,
        "shared memory": limits.shared_bytes // shared if shared else limits.blocks,
    }
    limiter = min(fits, key=lambda name: fits[name])
    blocks = fits[limiter]
    return Occupancy(blocks=blocks, fraction=blocks * warps / limits.warps, limiter=limiter)
