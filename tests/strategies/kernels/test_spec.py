"""Every kernel's promise, run: reference and compiled twin on ordinary inputs and on edge cases."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from strategies.kernels.dispatch import KERNELS, kernels
from strategies.kernels.spec import SPECS, Case, outputs_of

CPU = kernels("cpu")
INDICATORS = [spec for spec in SPECS.values() if spec.name != "excursions"]
PRICES = ("open", "high", "low", "close", "stop_distance")
FORGETFUL = ("sma", "bollinger", "true_range", "rolling_max", "stochastic", "vwap")
IN_PRICES = {  # kernels whose every output is in the unit of the price
    *("sma", "ema", "macd", "true_range", "atr", "bollinger", "rolling_max", "rolling_min", "vwap"),
}


def by_name(spec):
    return spec.name


@pytest.fixture(params=SPECS.values(), ids=by_name)
def spec(request):
    return request.param


@pytest.fixture(params=INDICATORS, ids=by_name)
def indicator(request):
    return request.param


def test_every_kernel_has_a_spec_and_its_reference_is_the_one_that_is_dispatched():
    assert tuple(sorted(SPECS)) == tuple(sorted(KERNELS))
    for name, spec in SPECS.items():
        assert spec.name == name
        assert spec.reference is getattr(kernels("reference"), name)


def test_every_edge_case_gives_the_same_bits_on_both_backends(spec):
    for name, case in spec.edge_cases().items():
        expected = spec.compute(case)
        found = outputs_of(getattr(CPU, spec.name)(*case.inputs, *case.parameters))
        assert len(found) == len(expected) == len(spec.outputs)
        for output, mine, its in zip(spec.outputs, found, expected, strict=True):
            assert_array_equal(mine, its, err_msg=f"{output}, {name}", strict=True)


def test_the_edge_cases_are_those_on_which_kernels_break(spec):
    cases = spec.edge_cases()
    sizes = {len(case.inputs[0]) for case in cases.values()}
    assert {0, 1} < sizes
    for name in ("constant", "rising", "falling", "NaN inside", "infinity inside", "huge print"):
        assert name in cases
    assert np.isfinite(cases["scale 1e-300"].inputs[0]).all()
    assert cases["scale 1e-300"].inputs[0].max() < 1e-297
    assert cases["scale 1e12"].inputs[0].min() > 1e11
    assert cases["least parameters"].parameters == spec.least
    holes = [np.isnan(x).any() for x in cases["NaN inside"].inputs if x.dtype == np.float64]
    assert holes
    assert all(holes)


def test_inputs_are_made_from_the_generator_alone(spec):
    first = spec.make_inputs(np.random.default_rng(5), 80)
    again = spec.make_inputs(np.random.default_rng(5), 80)
    assert [x.shape for x in first] == [(80,)] * len(spec.inputs)
    for x, y in zip(first, again, strict=True):
        assert_array_equal(x, y)


def test_values_begin_where_the_warm_up_ends(indicator):
    inputs = indicator.make_inputs(np.random.default_rng(1), 120)
    for parameters in (indicator.usual, indicator.least):
        found = indicator.compute(Case(inputs=inputs, parameters=parameters))
        for out, first in zip(found, indicator.warm_up(*parameters), strict=True):
            assert np.isnan(out[:first]).all()
            assert np.isfinite(out[first:]).all()


def test_one_bar_short_of_the_warm_up_there_is_nothing_and_with_it_one_value(indicator):
    cases = indicator.edge_cases()
    late = int(np.argmax(indicator.warm_up(*indicator.usual)))
    short = indicator.compute(cases["one bar short of the warm-up"])[late]
    exact = indicator.compute(cases["the warm-up and no more"])[late]
    assert np.isnan(short).all()
    assert np.flatnonzero(np.isfinite(exact)).tolist() == [len(exact) - 1]


def test_a_parameter_below_its_least_is_refused(indicator):
    inputs = indicator.make_inputs(np.random.default_rng(2), 60)
    for place, parameter in enumerate(indicator.parameters):
        if parameter.name == "deviations":
            continue  # any number of deviations has a meaning
        wrong = list(indicator.usual)
        wrong[place] = type(parameter.usual)(parameter.least - 1)
        with pytest.raises(ValueError, match=r"below|above|shorter"):
            indicator.reference(*inputs, *wrong)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_a_power_of_two_scales_prices_to_the_last_bit(indicator, backend):
    inputs = indicator.make_inputs(np.random.default_rng(3), 200)
    compute = getattr(kernels(backend), indicator.name)
    for power in (-30, 7):
        factor = 2.0**power
        scaled = [
            x * factor if name in PRICES else x
            for name, x in zip(indicator.inputs, inputs, strict=True)
        ]
        expected = outputs_of(compute(*inputs, *indicator.usual))
        found = outputs_of(compute(*scaled, *indicator.usual))
        for mine, its in zip(found, expected, strict=True):
            assert_array_equal(mine, its * factor if indicator.name in IN_PRICES else its)


def test_the_same_bars_after_a_hole_give_what_they_give_alone(indicator):
    inputs = indicator.make_inputs(np.random.default_rng(4), 90)
    alone = indicator.compute(Case(inputs=inputs, parameters=indicator.usual))
    for hole in (np.nan, np.inf, -np.inf):
        prefixed = tuple(np.concatenate((x[:25], [hole], x)) for x in inputs)
        for compute in (indicator.reference, getattr(CPU, indicator.name)):
            found = outputs_of(compute(*prefixed, *indicator.usual))
            for mine, its in zip(found, alone, strict=True):
                assert_array_equal(mine[26:], its)


@pytest.mark.parametrize("name", FORGETFUL)
def test_a_huge_print_is_forgotten_by_every_window(name):
    indicator = SPECS[name]
    case = indicator.edge_cases()["huge print"]
    clean = tuple(x[81:] for x in case.inputs)
    reach = int(sum(p for p in case.parameters if p >= 2)) + 1
    found = indicator.compute(case)
    alone = indicator.compute(Case(inputs=clean, parameters=case.parameters))
    for mine, its in zip(found, alone, strict=True):
        assert_allclose(mine[81:][reach:], its[reach:], rtol=1e-11, atol=1e-11)
        assert np.isfinite(its[reach:]).any() or len(its) <= reach
