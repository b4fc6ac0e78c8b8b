"""Numbers, clock times, dates and durations in both languages. It knows nothing of sentences."""

from endeavour.textbook.entries import Word

ENGLISH_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
ENGLISH_TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
GERMAN_ONES = [
    "null", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun",
    "zehn", "elf", "zwölf", "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn",
]  # fmt: skip
GERMAN_TENS = ["", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]

ENGLISH_ORDINALS = {1: "first", 2: "second", 3: "third", 5: "fifth", 8: "eighth", 9: "ninth", 12: "twelfth"}
GERMAN_ORDINALS = {1: "erst", 3: "dritt", 7: "siebt", 8: "acht"}


def english_number(number: int) -> str:
    """Words for 0-999: two hundred and twenty-one."""
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        words = f"{ENGLISH_ONES[hundreds]} hundred"
        return f"{words} and {english_number(rest)}" if rest else words
    if number < 20:
        return ENGLISH_ONES[number]
    tens, ones = divmod(number, 10)
    return f"{ENGLISH_TENS[tens]}-{ENGLISH_ONES[ones]}" if ones else ENGLISH_TENS[tens]


def german_number(number: int) -> str:
    """Words for 0-999 before a noun: zweihunderteinundzwanzig; 1 is "ein"."""
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        return f"{GERMAN_ONES[hundreds]}hundert" + (german_number(rest) if rest else "")
    if number < 20:
        return GERMAN_ONES[number]
    tens, ones = divmod(number, 10)
    return f"{GERMAN_ONES[ones]}und{GERMAN_TENS[tens]}" if ones else GERMAN_TENS[tens]


def english_ordinal(number: int) -> str:
    """Words for 1-31: twenty-first."""
    if number in ENGLISH_ORDINALS:
        return ENGLISH_ORDINALS[number]
    tens, ones = divmod(number, 10)
    if number < 20:
        return ENGLISH_ONES[number] + "th"
    return f"{ENGLISH_TENS[tens]}-{english_ordinal(ones)}" if ones else ENGLISH_TENS[tens][:-1] + "ieth"


def german_ordinal(number: int, ending: str) -> str:
    """Words for 1-31 with their ending: am dritten, der einundzwanzigste."""
    stem = GERMAN_ORDINALS.get(number) or german_number(number) + ("t" if number < 20 else "st")
    return stem + ending


def clock(hour: int, minute: int) -> Word:
    """The time of day without a preposition: half past three, halb vier. Hours are 1-12, minutes multiples of 5.

    From twenty-one to thirty-nine minutes only the half hour exists.
    """
    this, following = _hour(hour), _hour(hour % 12 + 1)
    if minute == 0:
        return Word(f"{'ein' if hour == 1 else this[1]} Uhr", f"{this[0]} o'clock")
    if minute == 30:
        return Word(f"halb {following[1]}", f"half past {this[0]}")
    after = minute < 30
    distance = minute if after else 60 - minute
    english = "a quarter" if distance == 15 else english_number(distance)
    german = "Viertel" if distance == 15 else german_number(distance)
    if after:
        return Word(f"{german} nach {this[1]}", f"{english} past {this[0]}")
    return Word(f"{german} vor {following[1]}", f"{english} to {following[0]}")


def _hour(hour: int) -> tuple[str, str]:
    return ENGLISH_ONES[hour], "eins" if hour == 1 else GERMAN_ONES[hour]


def at_clock(time: Word) -> Word:
    return Word(f"um {time.german}", f"at {time.english}")


def timetable(hour: int, minute: int) -> Word:
    """A time in figures: at 14:35, um 14:35 Uhr."""
    figures = f"{hour}:{minute:02d}"
    return Word(f"um {figures} Uhr", f"at {figures}")


def date(day: int, month: Word, on: bool = True) -> Word:
    """on the third of May, am dritten Mai; the third of May, der dritte Mai."""
    german = f"am {german_ordinal(day, 'en')}" if on else f"der {german_ordinal(day, 'e')}"
    return Word(f"{german} {month.german}", f"{'on ' * on}the {english_ordinal(day)} of {month.english}")


def on_weekday(day: Word, part: Word | None) -> Word:
    """on Monday, am Montag; on Monday evening, am Montagabend."""
    if part is None:
        return Word(f"am {day.german}", f"on {day.english}")
    return Word(f"am {day.german}{part.german}", f"on {day.english} {part.english}")


def in_period(period: Word) -> Word:
    """in May, im Mai; in summer, im Sommer."""
    return Word(f"im {period.german}", f"in {period.english}")


# English unit -> one of it and the plural in the accusative, then both in the dative.
UNITS = {
    "minute": ("eine Minute", "Minuten", "einer Minute", "Minuten"),
    "hour": ("eine Stunde", "Stunden", "einer Stunde", "Stunden"),
    "day": ("einen Tag", "Tage", "einem Tag", "Tagen"),
    "week": ("eine Woche", "Wochen", "einer Woche", "Wochen"),
    "month": ("einen Monat", "Monate", "einem Monat", "Monaten"),
    "year": ("ein Jahr", "Jahre", "einem Jahr", "Jahren"),
}


def span(number: int, unit: str, dative: bool = False) -> Word:
    """two hours, zwei Stunden; in the German accusative or dative."""
    one, plural = UNITS[unit][2:] if dative else UNITS[unit][:2]
    if number == 1:
        return Word(one, f"{'an' if unit == 'hour' else 'a'} {unit}")
    return Word(f"{german_number(number)} {plural}", f"{english_number(number)} {unit}s")


DISTANCES = {"ago": ("vor {}", "{} ago"), "ahead": ("in {}", "in {}"), "since": ("seit {}", "for {}")}


def distance(way: str, number: int, unit: str) -> Word:
    """ago: three days ago, vor drei Tagen; ahead: in three days; since: for three days (and still), seit."""
    german, english = DISTANCES[way]
    time = span(number, unit, dative=True)
    return Word(german.format(time.german), english.format(time.english))


def price(euros: int, in_words: bool) -> Word:
    """twenty-one euros, einundzwanzig Euro; 45 euros, 45 Euro. At least two euros."""
    german, english = (german_number(euros), english_number(euros)) if in_words else (str(euros), str(euros))
    return Word(f"{german} Euro", f"{english} euros")
