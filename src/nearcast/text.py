"""From text to words: what a word is, for messages and expressions alike.

Text is folded first: invisible characters go, then Unicode NFKC, casefold, NFKC again (without the second
NFKC the result would not be stable). Words are then found by rule, close to the default of UAX #29:

- a run of letters, marks, digits and `_` is a word, if it has more than `_` in it; everything else, control
  characters included, separates;
- one apostrophe between letters stays inside ("it's"), as does one `.` or `,` between digits ("3.14");
- scripts written without spaces have no runs that mean anything: each Han, Hiragana, Thai, Lao, Khmer or
  Myanmar letter is a word with its marks, and a phrase finds them in order. Katakana stays in runs, apart
  from other letters; Hangul counts as letters;
- `#tag` gives `tag` and `#tag` at the same position, if no word touches the `#` from the left.

Everything is linear in the length of the text, because texts come from strangers.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import groupby
from typing import Any, NamedTuple
from unicodedata import category, combining, normalize

import snowballstemmer

from nearcast.errors import AnalyzerError

ANALYZERS: tuple[str, ...] = ("unicode", *sorted(snowballstemmer.algorithms()))
"""`unicode` keeps every word as folded; the others are Snowball languages, which also stem."""

LONGEST_STEMMED = 64
"""Characters. Longer words are in no dictionary, and stemmers take quadratic time on them."""

STEMS_KEPT = 1 << 16
"""Stems remembered per analyzer: the vocabulary of most streams, some 10 MB at worst."""


class Token(NamedTuple):
    """A word and its place in the text, counted in words; dropped stop words are counted too."""

    word: str
    position: int


class TextTokens(Sequence[Token]):
    """The words of a text, found when somebody first asks for them: compiled code reads the text itself."""

    __slots__ = ("_found", "analyzer", "text")

    def __init__(self, text: str, analyzer: Analyzer) -> None:
        self.text, self.analyzer = text, analyzer
        self._found: tuple[Token, ...] | None = None

    def _all(self) -> tuple[Token, ...]:
        if self._found is None:
            self._found = tuple(self.analyzer.tokens(self.text))
        return self._found

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, at: Any) -> Any:
        return self._all()[at]

    def __iter__(self) -> Iterator[Token]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return self._all() == (other._all() if isinstance(other, TextTokens) else other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())

    def __reduce__(self) -> tuple[Any, ...]:
        return TextTokens, (self.text, self.analyzer)


@dataclass(frozen=True)
class Analyzer:
    """The one way from text to words that messages and expressions of a store share.

    Two analyzers of the same name are equal; pickling keeps only the name.
    """

    name: str
    _stop_words: frozenset[str] = field(init=False, repr=False, compare=False)
    _stem: Callable[[str], str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.name not in ANALYZERS:
            raise AnalyzerError(f"no analyzer is called {self.name!r}; there are: {', '.join(ANALYZERS)}")
        object.__setattr__(self, "_stop_words", _stop_words(self.name))
        object.__setattr__(self, "_stem", _stem_function(self.name))

    def tokens(self, text: str) -> list[Token]:
        """The words of the text with their positions; stop words leave a hole in the positions."""
        folded = fold(text, turkish=self.name == "turkish")
        spans = [match.span() for match in word_pattern(folded).finditer(folded)]
        tokens: list[Token] = []
        position = 0
        end_before = -1
        for index, (start, end) in enumerate(spans):
            word = folded[start:end]
            tagged = start > 0 and folded[start - 1] == "#" and end_before != start - 1
            end_before = end
            if word[0] == "_" and not word.strip("_"):
                continue
            if not (self._stop_words and self._is_stop_word(word)):
                tokens.append(Token(self._stem(word), position))
            if tagged:  # a stop word written as a tag was meant: #it stays findable
                tokens.append(Token("#" + self._stem(folded[start : _run_end(spans, index)]), position))
            position += 1
        return tokens

    def words(self, text: str) -> list[str]:
        """The words of the text in order, repeated as often as they occur."""
        return [token.word for token in self.tokens(text)]

    def _is_stop_word(self, word: str) -> bool:
        """Contractions and elisions ("it's", "c'est") are stop words if each of their parts is."""
        stop_words = self._stop_words
        return word in stop_words or ("'" in word and all(part in stop_words for part in word.split("'")))

    def __reduce__(self) -> tuple[Callable[[str], Analyzer], tuple[str]]:
        return analyzer, (self.name,)


@cache
def _known_analyzer(name: str) -> Analyzer:
    return Analyzer(name)


def analyzer(name: str = "unicode") -> Analyzer:
    """The analyzer of this name, one of `ANALYZERS`; the same object each time."""
    return _known_analyzer(name)


def _run_end(spans: list[tuple[int, int]], index: int) -> int:
    """Where the run of words that touch each other ends: the tag #東京 is longer than its first word."""
    while index + 1 < len(spans) and spans[index + 1][0] == spans[index][1]:
        index += 1
    return spans[index][1]


# --- folding -------------------------------------------------------------------------------------------

_KEYCAP = re.compile("[0-9#*]\u20e3")
_DOTTED_I = re.compile("i\u0307+")
_FLOOD = re.compile("[\\W\uff9e\uff9f]{31,}")
_APOSTROPHES = str.maketrans("’ʼ", "''")
_TURKISH_I = str.maketrans("Iİ", "ıi")


def fold(text: str, turkish: bool = False) -> str:
    """One form for all spellings that readers take for the same word."""
    if text.isascii() and not turkish:
        return text.lower()
    text = _invisible().sub("", text)
    text = _FLOOD.sub(_in_canonical_order, text)
    text = normalize("NFKC", text)
    if turkish:
        text = text.translate(_TURKISH_I)
    # Casefold makes İ an i with a second dot on it, which nobody sees and nobody types.
    text = _DOTTED_I.sub("i", text.casefold())
    text = normalize("NFKC", text).translate(_APOSTROPHES)
    return _KEYCAP.sub(" ", text)  # 1️⃣ is an emoji, not the number


def _in_canonical_order(run: re.Match[str]) -> str:
    """The same text for NFKC, with combining marks already sorted.

    CPython sorts the marks of one letter by insertion, in quadratic time: 100 KB of them would take half a
    minute. Marks are never in `\\w`, but the half-width kana sound marks, which become marks, are.
    """
    decomposed = (part for char in run.group() for part in normalize("NFKD", char))
    ordered: list[str] = []
    for is_mark, group in groupby(decomposed, key=lambda char: combining(char) != 0):
        parts = list(group)
        ordered += sorted(parts, key=combining) if is_mark else parts
    return "".join(ordered)


# --- words ---------------------------------------------------------------------------------------------

_HAN_AND_HIRAGANA = (
    "\u3005-\u3007\u3021-\u3029\u3038-\u303c\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00017000-\U00018d7f\U0001b170-\U0001b2ff\U00020000-\U0003ffff"  # Tangut, Khitan, Nushu; planes 2, 3
    "\u3041-\u3096\u309d-\u309f\U0001b001-\U0001b11f\U0001b132\U0001b150-\U0001b152"
)
_KATAKANA = (
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b000\U0001b120-\U0001b122\U0001b155\U0001b164-\U0001b167"
)
_SOUTH_EAST_ASIAN = (  # blocks of the scripts that UAX #14 gives the class SA
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0xA9E0, 0xA9FF),  # Myanmar
    (0xAA60, 0xAADF),  # Myanmar, Tai Viet
    (0x11700, 0x1174F),  # Ahom
)
_IGNORABLE = (  # Default_Ignorable_Code_Point beyond category Cf: fillers, joiners, variation selectors
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
)
_MARKS_AND_CONTROLS_END = 0x20000
"""Marks and format characters live in planes 0 and 1; those of plane 14 are all in `_IGNORABLE`."""

_INNER = r"(?<![\d_])'(?={letter})|(?<=\d)[.,](?=\d)"
_ASCII_WORD = re.compile(rf"\w+(?:(?:{_INNER.format(letter='[a-z]')})\w+)*", re.ASCII)


def word_pattern(folded: str) -> re.Pattern[str]:
    """ASCII has its own pattern: the same words several times as fast, without the tables of Unicode."""
    return _ASCII_WORD if folded.isascii() else _unicode_word()


@cache
def _unicode_word() -> re.Pattern[str]:
    """Each repetition below is over classes without a common character, so nothing is tried twice."""
    thai_like = [code for first, last in _SOUTH_EAST_ASIAN for code in range(first, last + 1)]
    solo = _HAN_AND_HIRAGANA + _ranges(code for code in thai_like if chr(code).isalpha())
    marks = _ranges(code for code in range(_MARKS_AND_CONTROLS_END) if category(chr(code)) in ("Mn", "Mc", "Me"))
    joined = rf"[^\W{solo}{_KATAKANA}]"
    letter = rf"[^\W\d_{solo}{_KATAKANA}]"
    run = rf"{joined}+(?:[{marks}]+{joined}*)*"
    return re.compile(
        rf"{run}(?:(?:{_INNER.format(letter=letter)}){run})*"
        rf"|[{solo}][{marks}]*"
        rf"|[{_KATAKANA}][{_KATAKANA}{marks}]*"
    )


@cache
def _invisible() -> re.Pattern[str]:
    """Characters that leave no trace on the screen: joiners, direction marks, soft hyphens, fillers."""
    formats = _ranges(code for code in range(_MARKS_AND_CONTROLS_END) if category(chr(code)) == "Cf")
    return re.compile(f"[{formats}{_IGNORABLE}]+")


def _ranges(codes: Iterable[int]) -> str:
    """The inside of a character class for ascending code points."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in runs)


# --- stems and stop words ------------------------------------------------------------------------------


class _Stemmer(threading.local):
    """A Snowball stemmer keeps the word it works on in itself, so each thread needs its own."""

    def __init__(self, language: str) -> None:
        self.stem: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord


def _stem_function(name: str) -> Callable[[str], str]:
    if name == "unicode":
        return str
    stemmer = _Stemmer(name)

    @lru_cache(maxsize=STEMS_KEPT)
    def stem(word: str) -> str:
        if any(char.isdigit() for char in word):
            return word
        return stemmer.stem(word) or word

    def stem_short(word: str) -> str:
        return word if len(word) > LONGEST_STEMMED else stem(word)

    return stem_short


def _stop_words(name: str) -> frozenset[str]:
    language = {"porter": "english", "dutch_porter": "dutch"}.get(name, name)
    return frozenset(fold(_STOP_WORDS.get(language, "")).split())


_STOP_WORDS = {  # words of grammar only; languages without a list stem and drop nothing
    "english": """
        a about above after again against all am an and any are aren't as at be because been before being
        below between both but by can can't cannot could couldn't d did didn't do does doesn't doing don't
        down during each few for from further had hadn't has hasn't have haven't having he her here hers
        herself him himself his how i if in into is isn't it its itself just ll m me more most mustn't my
        myself no nor not now of off on once only or other ought our ours ourselves out over own re s same
        shan't she should shouldn't so some such t than that the their theirs them themselves then there
        these they this those through to too under until up ve very was wasn't we were weren't what when
        where which while who whom why will with won't would wouldn't you your yours yourself yourselves
    """,
    "german": """
        aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch
        auf aus bei bin bis bist da damit dann das dass daß dasselbe dazu dein deine deinem deinen deiner
        dem den denn der des dessen dich die dies diese diesem diesen dieser dieses dir doch dort du durch
        ein eine einem einen einer eines er es etwas euch euer eure eurem euren eurer für gegen gewesen hab
        habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in
        indem ins ist jede jedem jeden jeder jedes jene jenem jenen jener jenes jetzt kann kein keine keinem
        keinen keiner keines können könnte man manche manchem manchen mancher manches mein meine meinem
        meinen meiner meines mich mir mit muss musste muß nach nicht nichts noch nun nur ob oder ohne s sehr
        sein seine seinem seinen seiner seines selbst sich sie sind so solche solchem solchen solcher
        solches soll sollte sondern sonst um und uns unser unsere unserem unseren unserer unter viel vom von
        vor war waren warst was weil welche welchem welchen welcher welches wenn werde werden wie wieder
        will wir wird wirst wo wollen wollte während würde würden zu zum zur zwar zwischen über
    """,
    "french": """
        à ai aie aient aies ait as au aux avaient avais avait avec avez aviez avions avoir avons ayant c ce
        ceci cela ces cet cette d dans de des du elle elles en es est et étaient étais était étant été êtes
        étiez étions être eu eue eut eux fûmes furent fus fut ici il ils j je jusqu l la le les leur leurs
        lorsqu lui m ma mais me même mes moi mon n ne nos notre nous on ont ou où par pas pour puisqu qu que
        quel quelle quelles quels qui quoi quoiqu s sa sans se sera serai seraient serais serait seras serez
        serons seront ses soi soient sois soit sommes son sont suis sur t ta te tes toi ton tu un une vos
        votre vous y
    """,
    "spanish": """
        a al algo algunas algunos ante antes aquel aquella aquellas aquellos aquí como con contra cual
        cuando de del desde donde durante e el él ella ellas ellos en entre era erais eran eras eres es esa
        esas ese eso esos esta está estaba estaban estado estamos están estar estas este esto estos estoy
        fue fueron fui ha habéis había habían haber hace han has hasta hay he hemos la las le les lo los más
        me mi mí mis mucho muchos muy nada ni no nos nosotras nosotros nuestra nuestras nuestro nuestros o
        os otra otras otro otros para pero poco por porque pues que qué quien quienes se sea sean ser será
        si sí sido sin sobre sois somos son soy su sus suya suyas suyo suyos también tanto te tenemos tener
        tengo ti tiene tienen todo todos tu tú tus tuya tuyas tuyo tuyos un una uno unos vosotras vosotros
        vuestra vuestras vuestro vuestros y ya yo
    """,
    "italian": """
        a abbia abbiamo abbiano ad agli ai al all alla alle allo anche avere avete aveva avevano avevo c che
        chi ci coi col come con contro cui d da dagli dai dal dall dalla dalle dallo degli dei del dell
        della delle dello di dov dove e è ed era erano eravamo ero essendo essere fosse fossero fra fu
        furono gli ha hai hanno ho i il in io l la le lei li lo loro lui m ma me mi mia mie miei mio n ne
        negli nei nel nell nella nelle nello noi non nostra nostre nostri nostro o per perché più quale
        quali quanta quante quanti quanto quell quella quelle quelli quello quest questa queste questi
        questo s sarà saranno sarebbe se sei si sia siamo siano siete sono sta stata state stati stato su
        sua sue sugli sui sul sull sulla sulle sullo suo suoi t ti tra tu tua tue tuo tuoi tutti tutto un
        una uno v vi voi vostra vostre vostri vostro
    """,
    "portuguese": """
        a à ao aos aquela aquelas aquele aqueles aquilo as às até com como da das de dela delas dele deles
        depois do dos e é ela elas ele eles em entre era eram essa essas esse esses esta está estamos estão
        estar estas estava estavam este estes estou eu foi fomos for foram fosse fui há haja hão havia hei
        isso isto já lhe lhes mais mas me mesmo meu meus minha minhas muito na não nas nem no nos nós nossa
        nossas nosso nossos num numa o os ou para pela pelas pelo pelos por qual quando que quem se seja
        sejam sem ser será serão seria seu seus só sou sua suas são também te tem têm temos tenha tenho ter
        teu teus teve tinha tinham tu tua tuas um uma você vocês vos
    """,
    "dutch": """
        aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een eens
        en er ge geen geweest haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je
        kan kon kunnen maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat onder ons
        ook op over reeds s t te tegen toch toen tot u uit uw van veel voor want waren was wat werd wezen
        wie wij wil worden wordt zal ze zelf zich zij zijn zo zonder zou
    """,
}
