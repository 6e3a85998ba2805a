from fairtrial.study.model.large_counts import format_large_count


def test_a_huge_count_is_formatted_as_a_power_of_ten():
    assert format_large_count(0) == "0"
    assert format_large_count(1_000_000_000) == "1,000,000,000"
    assert format_large_count(10**15) == "some 10^15"
    assert format_large_count(2**2000) == "some 10^602"
    assert format_large_count(10**100_000) == "some 10^100000"
