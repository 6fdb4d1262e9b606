"""Intervals and bounds, compared with SciPy 1.17 and the cited papers."""

import math
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.gate.statistics import (
    beta_cdf,
    binomial_tail_probability,
    cases_needed,
    clopper_pearson_lower_bound,
    estimate_mean,
    mean_confidence_interval,
    t_quantile,
)

# E. Miller, Adding Error Bars to Evals, 2024, with the small-sample correction.
CLUSTERS = [[1, 1, 1], [0, 0, 0], [1, 1, 0], [1, 0, 1]]


class TestDistributions:
    @pytest.mark.parametrize(
        ("degrees", "two_sided", "one_sided"),
        [
            (1, 12.706204736174694, 6.313751514675037),
            (2, 4.302652729749462, 2.9199855803537242),
            (3, 3.1824463052837078, 2.3533634348018233),
            (5, 2.5705818356363146, 2.0150483733330233),
            (10, 2.228138851986274, 1.8124611228116756),
            (30, 2.0422724563012378, 1.697260886593957),
            (100, 1.9839715185235518, 1.6602343260853392),
            (1000, 1.9623390808264083, 1.6463788172854643),
            (9999, 1.960201263621357, 1.6450060333112988),
        ],
    )
    def test_t_quantile_matches_scipy(
        self, degrees: int, two_sided: float, one_sided: float
    ) -> None:
        assert t_quantile(0.975, degrees) == pytest.approx(two_sided, rel=1e-9)
        assert t_quantile(0.95, degrees) == pytest.approx(one_sided, rel=1e-9)

    @pytest.mark.parametrize(
        ("x", "a", "b", "value"),
        [
            (0.5, 2, 3, 0.6875),
            (0.1, 0.5, 0.5, 0.20483276469913345),
            (0.9, 50, 5, 0.361447139727378),
            (0.3, 10, 1, 5.9048999999999975e-06),
            (0.99, 4990, 11, 5.484779773570475e-12),
            (0.5, 5000, 5001, 0.5039893230696917),
            (1e-09, 0.5, 3, 5.929270608862864e-05),
            (0.7, 1, 1, 0.7),
            (0.0, 2, 3, 0.0),
            (1.0, 2, 3, 1.0),
        ],
    )
    def test_beta_cdf_matches_scipy(self, x: float, a: float, b: float, value: float) -> None:
        assert beta_cdf(x, a, b) == pytest.approx(value, rel=1e-8)

    @given(st.integers(1, 60), st.data())
    def test_binomial_tail_matches_counting(self, whole: int, data: st.DataObject) -> None:
        passed = data.draw(st.integers(0, whole))
        rate = data.draw(st.floats(0.01, 0.99))
        counted = math.fsum(
            math.comb(whole, each) * rate**each * (1 - rate) ** (whole - each)
            for each in range(passed, whole + 1)
        )
        assert binomial_tail_probability(passed, whole, rate) == pytest.approx(counted, rel=1e-9)


class TestConfidenceInterval:
    def test_interval_adds_one_group_at_each_bound(self) -> None:
        found = mean_confidence_interval([[0.2], [0.4], [0.6]])
        assert found is not None
        scores = [0.2, 0.4, 0.6, 0.0, 1.0]
        deviation = math.sqrt(math.fsum((each - 0.44) ** 2 for each in scores) / 4)
        reach = 4.302652729749462 * deviation / math.sqrt(5)
        assert reach > 0.56
        assert (found.low, found.high, found.method) == (0.0, 1.0, "t")

    def test_interval_of_differences_reaches_below_0(self) -> None:
        found = mean_confidence_interval([[0.0]] * 30, low=-1.0)
        assert found is not None
        reach = 2.045229642132703 * math.sqrt(2 / 31 * 32) / 32
        assert (found.low, found.high) == pytest.approx((-reach, reach))

    def test_clustered_interval_uses_clustered_standard_error(self) -> None:
        found = mean_confidence_interval(CLUSTERS)
        assert found is not None
        sums = [3, 0, 2, 2, 0, 3]  # of three each, with the added groups
        center = 10 / 18
        error = math.sqrt(math.fsum((each - 3 * center) ** 2 for each in sums) * 6 / 5) / 18
        low = center - 3.1824463052837078 * error
        assert found.low == pytest.approx(max(0.0, low))
        assert (found.high, found.method) == (1.0, "clustered-t")

    def test_equal_groups_have_an_interval(self) -> None:
        found = mean_confidence_interval([[0.7]] * 9)
        assert found is not None
        assert 0 < found.low < 0.7 < found.high < 1

    def test_checks_of_equal_groups_count_once_per_group(self) -> None:
        single, several = (mean_confidence_interval([[1] * size] * 10) for size in (1, 3))
        assert single is not None
        assert several is not None
        assert (single.low, single.high) == pytest.approx((several.low, several.high))

    @pytest.mark.parametrize("groups", [[], [[1.0]], [[1.0, 0.0, 1.0]]])
    def test_one_group_has_no_interval(self, groups: list[list[float]]) -> None:
        assert estimate_mean(groups) is None
        assert mean_confidence_interval(groups) is None

    @given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=2, max_size=12))
    def test_interval_contains_mean_and_stays_in_0_to_1(self, groups: list[list[float]]) -> None:
        found = mean_confidence_interval(groups)
        assert found is not None
        scores = [*chain(*groups)]
        mean = math.fsum(scores) / len(scores)
        assert 0 <= found.low <= mean + 1e-12
        assert mean - 1e-12 <= found.high <= 1
        assert found.low < found.high

    @given(st.lists(st.floats(0, 1), min_size=2, max_size=9))
    def test_duplicated_scores_do_not_change_the_estimate(self, scores: list[float]) -> None:
        once, twice = (estimate_mean([[each] * times for each in scores]) for times in (1, 2))
        assert once is not None
        assert twice is not None
        assert (once.center, once.error) == pytest.approx((twice.center, twice.error))


class TestLowerBound:
    @pytest.mark.parametrize(
        ("passed", "whole", "bound"),
        [
            (9, 10, 0.6058366975634952),
            (10, 10, 0.7411344491069477),
            (0, 10, 0.0),
            (45, 50, 0.8011669974835816),
            (190, 200, 0.916664848933628),
            (28, 29, 0.8466079754738173),
            (29, 29, 0.9018553723227043),
            (4999, 5000, 0.9990515822299956),
            (2500, 5000, 0.4882713259590563),
            (9990, 10000, 0.9983043685463546),
        ],
    )
    def test_clopper_pearson_bound_matches_scipy(
        self, passed: int, whole: int, bound: float
    ) -> None:
        assert clopper_pearson_lower_bound(passed, whole, 0.95) == pytest.approx(bound, rel=1e-9)

    def test_two_sided_bound_uses_half_of_alpha(self) -> None:
        assert clopper_pearson_lower_bound(9, 10, 0.975) == pytest.approx(0.554984, abs=5e-7)

    @pytest.mark.parametrize(
        ("rate", "needed"), [(0.8, 14), (0.9, 29), (0.95, 59), (0.99, 299), (0.5, 5)]
    )
    def test_cases_needed_without_failures_matches_reference(
        self, rate: float, needed: int
    ) -> None:
        assert cases_needed(0, rate, 0.95) == needed

    @given(st.integers(0, 5), st.floats(0.05, 0.97), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
    def test_cases_needed_is_minimum_that_reaches_rate(
        self, failed: int, rate: float, confidence: float
    ) -> None:
        needed = cases_needed(failed, rate, confidence)
        assert clopper_pearson_lower_bound(needed - failed, needed, confidence) >= rate - 1e-6
        fewer = needed - 1
        if fewer > failed:
            assert clopper_pearson_lower_bound(fewer - failed, fewer, confidence) < rate + 1e-6
