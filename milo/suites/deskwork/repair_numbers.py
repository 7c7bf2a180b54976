"""Functions of numbers for family `repair`."""

from __future__ import annotations

from milo.suites.deskwork.repair_case import Case, ints

NUMBER_CASES = (
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
        inputs=lambda rng: [ints(rng)],
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
        inputs=lambda rng: [ints(rng)],
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
        inputs=lambda rng: [ints(rng, 1, 6)],
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
)
