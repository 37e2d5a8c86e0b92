"""How many blocks fit on a multiprocessor, against NVIDIA's own occupancy tables."""

from __future__ import annotations

import pytest

from strategies.kernels.cuda.occupancy import LIMITS, occupancy


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "blocks", "fraction", "limiter"),
    [
        # 128 threads: measured with NVIDIA's occupancy calculator
        ((9, 0), 128, 80, 0, 6, 0.375, "registers"),
        ((9, 0), 128, 48, 0, 10, 0.625, "registers"),
        ((9, 0), 128, 40, 0, 12, 0.75, "registers"),
        ((9, 0), 128, 32, 0, 16, 1.0, "warps"),
        ((8, 0), 128, 64, 0, 8, 0.5, "registers"),
        ((7, 5), 128, 64, 0, 8, 1.0, "warps"),
        ((9, 0), 32, 16, 0, 32, 0.5, "blocks"),
        ((9, 0), 64, 32, 9_728, 21, 0.65625, "shared memory"),
        ((7, 5), 64, 32, 32 << 10, 2, 0.125, "shared memory"),
        ((9, 0), 1024, 64, 0, 1, 0.5, "registers"),
        ((9, 0), 1024, 65, 0, 0, 0.0, "registers"),  # such a block cannot be launched
        ((9, 0), 33, 16, 0, 32, 1.0, "warps"),  # a warp more than half empty is a whole one
    ],
)
def test_blocks_that_fit(capability, threads, registers, shared, blocks, fraction, limiter):
    found = occupancy(capability, threads=threads, registers=registers, shared_bytes=shared)
    assert (found.blocks, found.fraction, found.limiter) == (blocks, fraction, limiter)


@pytest.mark.parametrize("capability", LIMITS)
def test_more_registers_never_fit_more_blocks(capability):
    blocks = [
        occupancy(capability, threads=128, registers=registers, shared_bytes=0).blocks
        for registers in range(16, 256)
    ]
    assert blocks == sorted(blocks, reverse=True)


def test_an_architecture_whose_limits_are_not_known_is_refused():
    with pytest.raises(ValueError, match="sm_50 are not known; listed are sm_75"):
        occupancy((5, 0), threads=128, registers=32, shared_bytes=0)


@pytest.mark.parametrize("threads", [0, 1025])
def test_a_block_no_device_takes_is_refused(threads):
    with pytest.raises(ValueError, match=r"outside 1\.\.1024"):
        occupancy((9, 0), threads=threads, registers=32, shared_bytes=0)
