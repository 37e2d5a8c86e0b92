"""What is counted in PTX, on programs short enough to count by hand."""

from __future__ import annotations

from strategies.kernels.cuda.ptx import instructions, loop_instructions

STRAIGHT = """
.version 9.0
.visible .entry straight(
	.param .u64 straight_param_0
)
{
	.reg .b32 	%r<4>; // a comment; with a semicolon
	mov.u32 	%r1, %tid.x;
	{
	.reg .b32 temp;
	mov.b64 {temp, %r2}, %rd1; mov.u32 %r3, temp;
	}
	ret;
}
"""

LOOPS = """
.visible .entry loops()
{
	mov.u32 	%r1, 0;
$L__BB0_1:
	add.s32 	%r1, %r1, 1;
	mov.u32 	%r2, 0;
$L__BB0_2:
	add.s32 	%r2, %r2, 1;
	setp.lt.s32 	%p1, %r2, 8;
	@%p1 bra 	$L__BB0_2;
	setp.eq.s32 	%p2, %r1, 3;
	@%p2 bra 	$L__BB0_4;
	bra.uni 	$L__BB0_3;
$L__BB0_3:
	setp.lt.s32 	%p3, %r1, 8;
	@%p3 bra 	$L__BB0_1;
$L__BB0_4:
	st.global.u32 	[%rd1], %r1;
	ret;
}
"""


def test_instructions_are_counted_and_directives_are_not():
    assert instructions(STRAIGHT) == [
        "mov.u32 \t%r1, %tid.x",
        "mov.b64 {temp, %r2}, %rd1",
        "mov.u32 %r3, temp",
        "ret",
    ]


def test_a_program_without_a_loop_has_none():
    assert loop_instructions(STRAIGHT) == 0


def test_the_biggest_loop_counts_the_inner_one_and_not_what_is_around():
    assert loop_instructions(LOOPS) == 10
    assert len(instructions(LOOPS)) == 13


def test_the_inner_loop_alone_counts_where_the_outer_one_is_gone():
    inner = LOOPS.replace("@%p3 bra 	$L__BB0_1;", "")
    assert loop_instructions(inner) == 3
