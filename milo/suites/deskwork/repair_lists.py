"""Functions of lists and texts for family `repair`."""

from __future__ import annotations

from milo.suites.deskwork.repair_case import Case, ints, phrase, word

LIST_CASES = (
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
        inputs=lambda rng: [ints(rng), rng.randint(0, 6)],
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
        inputs=lambda rng: [phrase(rng)],
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
        inputs=lambda rng: [word(rng)],
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
        inputs=lambda rng: [ints(rng, 1, 5)],
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
        inputs=lambda rng: [phrase(rng).lower()],
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
        inputs=lambda rng: [ints(rng), rng.randint(1, 4)],
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
        inputs=lambda rng: [ints(rng, least=1)],
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
        inputs=lambda rng: [ints(rng, 1, 8), ints(rng, 1, 8)],
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
        inputs=lambda rng: [phrase(rng)],
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
        inputs=lambda rng: [ints(rng, 1, 3), rng.randint(1, 3)],
    ),
)
