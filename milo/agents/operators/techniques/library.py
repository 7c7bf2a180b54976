"""Invented tasks with replies, one for each common shape of work in a folder."""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """An invented task (with the file that it reads, as far as it is shown) and two replies."""

    task: str
    python: str
    bash: str
    file: str = ""

    def question(self) -> str:
        """The task as it is shown, its file below it."""
        return self.task + (f"\n\n{self.file}" if self.file else "")


LIBRARY = (
    Example(
        "Lines of `song.txt` that mention rain go to `rain.txt` in capitals, sorted.",
        "lines = open('song.txt').read().splitlines()\n"
        "found = sorted(line.upper() for line in lines if 'rain' in line)\n"
        "open('rain.txt', 'w').write('\\n'.join(found) + '\\n')",
        "grep rain song.txt | tr a-z A-Z | sort > rain.txt",
        "song.txt:\n```\nhear the rain\nsee the sun\n...\n```",
    ),
    Example(
        "Describe the bird of `bird.txt` in `bird.json` with `species`, `age` and `tame`.",
        "import json\nbird = {'species': 'parrot', 'age': 31, 'tame': True}\n"
        "json.dump(bird, open('bird.json', 'w'))",
        'echo \'{"species": "parrot", "age": 31, "tame": true}\' > bird.json',
        "bird.txt:\n```\nOur old parrot Coco, 31 years of age, eats from the hand.\n```",
    ),
    Example(
        "`rides.txt` lists day, horse and km. Put the horse with most rides on tue in `horse.txt`.",
        "rides = {}\nfor line in open('rides.txt'):\n"
        "    day, horse, km = line.split(maxsplit=2)\n    if day == 'tue':\n"
        "        rides[horse] = rides.get(horse, 0) + 1\n"
        "open('horse.txt', 'w').write(max(rides, key=rides.get))",
        "awk '$1 == \"tue\" {print $2}' rides.txt | sort | uniq -c | sort -n | tail -1"
        " | awk '{print $2}' > horse.txt",
        "rides.txt:\n```\nmon bella 12\ntue rex 30\n...\n```",
    ),
    Example(
        "`nest.txt` lists tree, bird and eggs. In `n.txt` put how many nests are in an oak.",
        "count = 0\nfor line in open('nest.txt'):\n"
        "    tree, bird, eggs = line.split(maxsplit=2)\n    if tree == 'oak':\n"
        "        count += 1\nopen('n.txt', 'w').write(str(count))",
        "awk '$1 == \"oak\"' nest.txt | wc -l > n.txt",
        "nest.txt:\n```\nelm crow 3\noak owl 2\n...\n```",
    ),
    Example(
        "`hops.txt` lists frog, jump and pond. Which frog has the longest jump? To `frog.txt`.",
        "best = None\nfor line in open('hops.txt'):\n"
        "    frog, jump, pond = line.split(maxsplit=2)\n    size = float(jump.strip('cm'))\n"
        "    if best is None or size > best[0]:\n        best = (size, frog)\n"
        "open('frog.txt', 'w').write(best[1])",
        "sort -k2 -n hops.txt | tail -1 | cut -d' ' -f1 > frog.txt",
        "hops.txt:\n```\nkero 31cm north\nquax 55cm mill\n...\n```",
    ),
    Example(
        "Add up the `crew` of all boats in `boats.csv` that sail; put it in `crew.txt`.",
        "import csv\ntotal = 0\nfor row in csv.DictReader(open('boats.csv')):\n"
        "    if row['kind'] == 'sail':\n        total += int(row['crew'])\n"
        "open('crew.txt', 'w').write(str(total))",
        "awk -F, '$2 == \"sail\" {n += $3} END {print n}' boats.csv > crew.txt",
        "boats.csv:\n```\nname,kind,crew\nAlba,sail,4\nBora,motor,2\n...\n```",
    ),
    Example(
        "Ida has 48 stamps. She gives away 5 sets of 6, then sells the rest at 2 coins apiece. "
        "Put the coins that she gets in `coins.txt`.",
        "# Ida has 48 stamps.\nstamps = 48\n# She gives away 5 sets of 6.\ngiven = 5 * 6\n"
        "# The rest is sold at 2 coins apiece.\nrest = stamps - given\ncoins = rest * 2\n"
        "open('coins.txt', 'w').write(str(coins))",
        "given=$((5 * 6))\nrest=$((48 - given))\necho $((rest * 2)) > coins.txt",
    ),
    Example(
        "Put `old_` before the name of all .wav files in this folder.",
        "import os\nfor name in os.listdir('.'):\n    if name.endswith('.wav'):\n"
        "        os.rename(name, 'old_' + name)",
        'for name in *.wav; do mv "$name" "old_$name"; done',
    ),
    Example(
        "From the folder `den` the files that mention snow are copied to a new folder `cold`.",
        "import os, shutil\nos.makedirs('cold', exist_ok=True)\nfor name in os.listdir('den'):\n"
        "    path = os.path.join('den', name)\n    if 'snow' in open(path).read():\n"
        "        shutil.copy(path, 'cold')",
        "mkdir -p cold\ngrep -l snow den/* | xargs -I{} cp {} cold/",
    ),
    Example(
        "Every cat in `poem.txt` becomes a dog.",
        "text = open('poem.txt').read()\nopen('poem.txt', 'w').write(text.replace('cat', 'dog'))",
        "sed -i 's/cat/dog/g' poem.txt",
        "poem.txt:\n```\nThe cat sat.\n```",
    ),
)
