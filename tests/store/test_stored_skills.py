"""Skills and their versions."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from pitboss.core.errors import UserError


def test_a_new_content_makes_a_new_version_and_the_old_one_stays(bench):
    first = bench.skills.save("trend", "1" * 64, b"one")
    second = bench.skills.save("trend", "2" * 64, b"two")

    assert (first.version, second.version) == (1, 2)
    assert bench.skills.get("trend").body == b"two"
    assert bench.skills.get("trend", 1).body == b"one"
    assert bench.skills.get_by_id(first.id, 1) == first


def test_the_same_content_again_makes_no_version(bench):
    first = bench.skills.save("trend", "1" * 64, b"one")
    bench.skills.save("trend", "2" * 64, b"two")
    bench.at += 1000

    assert bench.skills.save("trend", "1" * 64, b"one") == first
    assert [line.latest_version for line in bench.skills.list()] == [2]


def test_two_names_do_not_share_versions(bench):
    bench.skills.save("trend", "1" * 64, b"one")

    assert bench.skills.save("range", "1" * 64, b"one").version == 1
    assert [line.name for line in bench.skills.list()] == ["range", "trend"]


def test_an_unknown_skill_is_a_mistake_that_names_the_known_ones(bench):
    with pytest.raises(UserError) as empty:
        bench.skills.get("trend")
    bench.skills.save("range", "1" * 64, b"one")
    with pytest.raises(UserError) as refusal:
        bench.skills.get("trend")

    assert "first run" in empty.value.hint
    assert "range" in refusal.value.hint


@pytest.mark.parametrize("version", [0, 7])
def test_an_unknown_version_is_a_mistake_that_names_the_range(bench, version):
    bench.skills.save("trend", "1" * 64, b"one")

    with pytest.raises(UserError, match=f"no version {version}") as refused:
        bench.skills.get("trend", version)

    assert "from 1 to 1" in refused.value.hint


def test_many_who_save_the_same_new_skill_at_once_get_the_same_version(bench):
    with ThreadPoolExecutor(8) as pool:
        saved = list(pool.map(lambda _: bench.skills.save("new", "7" * 64, b"{}"), range(8)))

    assert {(skill.id, skill.version) for skill in saved} == {(saved[0].id, 1)}


def test_a_version_keeps_the_text_of_its_author_and_the_same_content_may_bring_other_comments(bench):
    plain = bench.skills.save("trend", "1" * 64, b"one")
    assert bench.skills.text_of(plain) is None

    bench.skills.save("trend", "1" * 64, b"one", "a: 1  # first\n")
    again = bench.skills.save("trend", "1" * 64, b"one", "a: 1  # second\n")
    bench.skills.save("trend", "2" * 64, b"two", "a: 2\n")

    assert again == plain
    assert bench.skills.text_of(plain) == "a: 1  # second\n"
    assert [version.version for version in bench.skills.versions("trend")] == [2, 1]


def test_the_latest_versions_and_newest_runs_are_those_found_one_by_one(bench):
    for number in range(12):
        bench.at += number % 3  # some at the same instant
        skill = bench.skills.save(("trend", "range", "news")[number % 3], f"{number:x}" * 64, b"{}")
        if number % 3 != 2:
            bench.runs.create(skill.id, skill.version, "policy/hold", {}, "d" * 64)

    latest = bench.skills.latest()
    assert list(latest) == [bench.skills.get(line.name) for line in bench.skills.list()]
    newest = bench.runs.newest_by_skill()
    for skill in latest:
        assert [newest[key] for key in [skill.id] if key in newest] == bench.runs.listing(1, skill=skill.name).runs
    assert bench.skills.owned_by("others").latest() == []
    assert bench.runs.owned_by("others").newest_by_skill() == {}
