"""The functions that family `repair` breaks: source, bugs, intent and random inputs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from milo.suites.deskwork.words import CITIES, FRUITS


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One function. `$NAME` and the keys of `options` are filled into source and intent.

    `bugs` are pairs (right text, wrong text) within the source; `inputs` makes argument lists.
    """

    names: tuple[str, ...]
    intent: str
    source: str
    bugs: tuple[tuple[str, str], ...]
    inputs: Callable[[random.Random], list[Any]]
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _ints(rng: random.Random, low: int = -20, high: int = 60, least: int = 0) -> list[int]:
    return [rng.randint(low, high) for _ in range(rng.randint(least, 7))]


def _phrase(rng: random.Random) -> str:
    words = [rng.choice((*FRUITS, *CITIES)) for _ in range(rng.randint(1, 5))]
    return " ".join(words)


def _word(rng: random.Random) -> str:
    return rng.choice(("level", "Noon", "abba", "Rotor", "kayak", *FRUITS, *CITIES))


CASES = (
    Case(
        names=("last_items", "tail_of", "final_part"),
        intent="return a list with the last `n` elements of `items`, or all if there are fewer; "
        "an empty list if `n` is 0.",
        source="""def $NAME(items, n):
    if n <= 0:
        return []
    return items[-n:]
""",
        bugs=(("items[-n:]", "items[-n + 1:]"), ("items[-n:]", "items[:n]")),
        inputs=lambda rng: [_ints(rng), rng.randint(0, 6)],
    ),
    Case(
        names=("count_vowels", "vowel_count", "vowels_in"),
        intent="return how many vowels (a, e, i, o, u) stand in `text`, upper or lower case.",
        source="""def $NAME(text):
    count = 0
    for letter in text.lower():
        if letter in "aeiou":
            count += 1
    return count
""",
        bugs=(('"aeiou"', '"aeio"'), ("count += 1", "count = 1"), ("count = 0", "count = 1")),
        inputs=lambda rng: [_phrase(rng)],
    ),
    Case(
        names=("mean_of", "average", "mean_value"),
        intent="return the arithmetic mean of the numbers in `values`, and 0 if there are none.",
        source="""def $NAME(values):
    if not values:
        return 0
    total = 0
    for value in values:
        total += value
    return total / len(values)
""",
        bugs=(
            ("total / len(values)", "total // len(values)"),
            ("total += value", "total = value"),
            ("    if not values:\n        return 0\n", ""),
        ),
        inputs=lambda rng: [_ints(rng)],
    ),
    Case(
        names=("largest_gap", "max_gap", "widest_step"),
        intent="return the largest absolute difference between neighbours in the list `values`, "
        "and 0 if it has fewer than two.",
        source="""def $NAME(values):
    best = 0
    for i in range(len(values) - 1):
        gap = abs(values[i + 1] - values[i])
        if gap > best:
            best = gap
    return best
""",
        bugs=(
            ("len(values) - 1", "len(values) - 2"),
            ("abs(values[i + 1] - values[i])", "values[i + 1] - values[i]"),
            ("gap > best", "gap < best"),
        ),
        inputs=lambda rng: [_ints(rng)],
    ),
    Case(
        names=("is_palindrome", "reads_same_back", "is_mirror"),
        intent="return True if `word` reads the same forwards and backwards, ignoring upper and "
        "lower case, and False otherwise.",
        source="""def $NAME(word):
    word = word.lower()
    return word == word[::-1]
""",
        bugs=(("    word = word.lower()\n", ""), ("word[::-1]", "word[::1]")),
        inputs=lambda rng: [_word(rng)],
    ),
    Case(
        names=("word_counts", "count_words", "tally_words"),
        intent="return a dictionary that maps every word of `text` (split at blanks, in lower "
        "case) to how often it occurs.",
        source="""def $NAME(text):
    counts = {}
    for word in text.lower().split():
        counts[word] = counts.get(word, 0) + 1
    return counts
""",
        bugs=(
            ("counts.get(word, 0) + 1", "1"),
            ("counts.get(word, 0)", "counts.get(word, 1)"),
            ("text.lower().split()", "text.split()"),
        ),
        inputs=lambda rng: [" ".join(rng.choice(("Fig", "fig", "plum")) for _ in range(5))],
    ),
    Case(
        names=("clamp", "limit_to", "keep_within"),
        intent="return `value` if it lies between `low` and `high`, `low` if it is smaller, and "
        "`high` if it is larger.",
        source="""def $NAME(value, low, high):
    if value < low:
        return low
    if value > high:
        return high
    return value
""",
        bugs=(("        return high", "        return low"), ("value < low", "value > low")),
        inputs=lambda rng: [rng.randint(-20, 40), rng.randint(0, 9), rng.randint(10, 20)],
    ),
    Case(
        names=("leap_year", "is_leap", "has_leap_day"),
        intent="return True for leap years: divisible by 4, but not by 100 unless also by 400.",
        source="""def $NAME(year):
    if year % 400 == 0:
        return True
    if year % 100 == 0:
        return False
    return year % 4 == 0
""",
        bugs=(
            ("    if year % 400 == 0:\n        return True\n", ""),
            ("    if year % 100 == 0:\n        return False\n", ""),
            ("year % 4 == 0", "year % 4 == 1"),
        ),
        inputs=lambda rng: [rng.choice((rng.randint(1890, 2110), rng.randint(15, 24) * 100))],
    ),
    Case(
        names=("unique_in_order", "without_repeats", "drop_repeats"),
        intent="return a list of the elements of `items` in which each stands only once, in the "
        "order of first appearance.",
        source="""def $NAME(items):
    seen = []
    for item in items:
        if item not in seen:
            seen.append(item)
    return seen
""",
        bugs=(
            ("item not in seen", "item in seen"),
            ("return seen", "return sorted(seen)"),
            ("seen.append(item)", "seen.insert(0, item)"),
        ),
        inputs=lambda rng: [_ints(rng, 1, 5)],
    ),
    Case(
        names=("price_after", "reduced_price", "sale_price"),
        intent="return `price` reduced by `percent` percent; orders of $LIMIT or more pieces "
        "(`count`) get another 5 off the result, but the result is never below 0.",
        source="""def $NAME(price, percent, count):
    result = price * (100 - percent) / 100
    if count >= $LIMIT:
        result -= 5
    return max(result, 0)
""",
        bugs=(
            ("count >= $LIMIT", "count > $LIMIT"),
            ("(100 - percent) / 100", "percent / 100"),
            ("return max(result, 0)", "return result"),
        ),
        inputs=lambda rng: [
            rng.choice((4, 5, 20, 60)),
            rng.choice((10, 25, 50)),
            rng.choice((8, 9, 10, 11, 12, 15)),
        ],
        options={"LIMIT": ("10", "12")},
    ),
    Case(
        names=("sum_digits", "digit_sum", "cross_sum"),
        intent="return the sum of the decimal digits of the integer `number`; the sign is ignored.",
        source="""def $NAME(number):
    number = abs(number)
    total = 0
    while number > 0:
        total += number % 10
        number //= 10
    return total
""",
        bugs=(
            ("    number = abs(number)\n", ""),
            ("while number > 0", "while number > 9"),
            ("number % 10", "number % 9"),
        ),
        inputs=lambda rng: [rng.choice((-1, 1, 1)) * rng.randint(0, 99999)],
    ),
    Case(
        names=("second_largest", "runner_up", "next_best"),
        intent="return the second largest different number in `values`, or None if there are fewer "
        "than two different numbers.",
        source="""def $NAME(values):
    ordered = sorted(set(values))
    if len(ordered) < 2:
        return None
    return ordered[-2]
""",
        bugs=(
            ("ordered[-2]", "ordered[1]"),
            ("sorted(set(values))", "sorted(values)"),
            ("    if len(ordered) < 2:\n        return None\n", ""),
        ),
        inputs=lambda rng: [_ints(rng, 1, 6)],
    ),
    Case(
        names=("initials", "initials_of", "short_name"),
        intent="return the first letter of every word of `name`, in upper case, each followed by a "
        "dot, for instance `A.B.` for `anna berg`.",
        source="""def $NAME(name):
    result = ""
    for part in name.split():
        result += part[0].upper() + "."
    return result
""",
        bugs=(
            ("part[0].upper()", "part[0]"),
            ("part[0]", "part[-1]"),
            ("result += ", "result = "),
        ),
        inputs=lambda rng: [_phrase(rng).lower()],
    ),
    Case(
        names=("chunks", "split_list", "in_groups"),
        intent="return a list of lists: `items` cut into pieces of `size` elements, in order; the "
        "last piece may be shorter.",
        source="""def $NAME(items, size):
    result = []
    for start in range(0, len(items), size):
        result.append(items[start:start + size])
    return result
""",
        bugs=(
            ("items[start:start + size]", "items[start:size]"),
            ("range(0, len(items), size)", "range(0, len(items) - size, size)"),
            ("range(0, ", "range(1, "),
        ),
        inputs=lambda rng: [_ints(rng), rng.randint(1, 4)],
    ),
    Case(
        names=("to_minutes", "minutes_of", "clock_minutes"),
        intent="`text` is a time such as `7:45`; return the minutes since midnight as an integer.",
        source="""def $NAME(text):
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)
""",
        bugs=(
            ("* 60", "* 100"),
            ("int(hours) * 60 + int(minutes)", "int(minutes) * 60 + int(hours)"),
            ("+ int(minutes)", "- int(minutes)"),
        ),
        inputs=lambda rng: [f"{rng.randint(0, 23)}:{rng.randint(0, 59):02d}"],
    ),
    Case(
        names=("is_prime", "prime", "check_prime"),
        intent="return True if the integer `n` is a prime number and False otherwise; numbers "
        "below 2 are not prime.",
        source="""def $NAME(n):
    if n < 2:
        return False
    for d in range(2, int(n ** 0.5) + 1):
        if n % d == 0:
            return False
    return True
""",
        bugs=(
            ("int(n ** 0.5) + 1", "int(n ** 0.5)"),
            ("    if n < 2:\n        return False\n", ""),
            ("n % d == 0", "n % d == 1"),
        ),
        inputs=lambda rng: [rng.choice((0, 1, 2, 4, 9, 25, 49, rng.randint(2, 90)))],
    ),
    Case(
        names=("running_total", "cumulative", "partial_sums"),
        intent="return a list whose element i is the sum of `values` up to and including "
        "element i.",
        source="""def $NAME(values):
    result = []
    total = 0
    for value in values:
        total += value
        result.append(total)
    return result
""",
        bugs=(
            (
                "        total += value\n        result.append(total)",
                "        result.append(total)\n        total += value",
            ),
            ("result.append(total)", "result.append(value)"),
            ("    return result", "        return result"),
        ),
        inputs=lambda rng: [_ints(rng, least=1)],
    ),
    Case(
        names=("grade", "mark_for", "rating"),
        intent="return `A` for $HIGH points or more, `B` for $MID or more, `C` for $LOW or more, "
        "and `F` below that.",
        source="""def $NAME(points):
    if points >= $HIGH:
        return "A"
    if points >= $MID:
        return "B"
    if points >= $LOW:
        return "C"
    return "F"
""",
        bugs=(
            ("points >= $HIGH", "points > $HIGH"),
            ("points >= $MID", "points <= $MID"),
            ('    return "F"', '    return "D"'),
        ),
        inputs=lambda rng: [rng.choice((90, 88, 75, 70, 50, 45, rng.randint(0, 100)))],
        options={"HIGH": ("90", "88"), "MID": ("75", "70"), "LOW": ("50", "45")},
    ),
    Case(
        names=("common_items", "shared", "in_both"),
        intent="return a sorted list of the elements that stand in both `first` and `second`, each "
        "once.",
        source="""def $NAME(first, second):
    result = []
    for item in first:
        if item in second and item not in result:
            result.append(item)
    return sorted(result)
""",
        bugs=(
            (" and item not in result", ""),
            ("sorted(result)", "result"),
            ("item in second and", "item not in second and"),
        ),
        inputs=lambda rng: [_ints(rng, 1, 8), _ints(rng, 1, 8)],
    ),
    Case(
        names=("longest_word", "find_longest", "biggest_word"),
        intent="return the longest word of `text` (split at blanks); the first one if several are "
        "equally long.",
        source="""def $NAME(text):
    best = ""
    for word in text.split():
        if len(word) > len(best):
            best = word
    return best
""",
        bugs=(
            ("len(word) > len(best)", "len(word) >= len(best)"),
            ("len(word) > len(best)", "word > best"),
            ("    return best", "    return len(best)"),
        ),
        inputs=lambda rng: [_phrase(rng)],
    ),
    Case(
        names=("fizz", "label_number", "say_number"),
        intent="return `both` if `n` is divisible by 3 and by $M, `three` if only by 3, `other` if "
        "only by $M, and otherwise the number as a string.",
        source="""def $NAME(n):
    if n % 3 == 0 and n % $M == 0:
        return "both"
    if n % 3 == 0:
        return "three"
    if n % $M == 0:
        return "other"
    return str(n)
""",
        bugs=(
            ("n % 3 == 0 and n % $M == 0", "n % 3 == 0 or n % $M == 0"),
            ("return str(n)", "return n"),
            ('    if n % $M == 0:\n        return "other"\n', ""),
        ),
        inputs=lambda rng: [rng.choice((15, 21, 30, 42, rng.randint(1, 60)))],
        options={"M": ("5", "7")},
    ),
    Case(
        names=("positions", "find_all", "indexes_of"),
        intent="return the list of all indexes at which `wanted` stands in the list `items`.",
        source="""def $NAME(items, wanted):
    found = []
    for i in range(len(items)):
        if items[i] == wanted:
            found.append(i)
    return found
""",
        bugs=(
            ("range(len(items))", "range(1, len(items))"),
            ("found.append(i)", "found.append(items[i])"),
            ("            found.append(i)", "            found = [i]"),
        ),
        inputs=lambda rng: [_ints(rng, 1, 3), rng.randint(1, 3)],
    ),
)
