"""What people in the generated world write and wait for: word lists and sentence patterns by topic.

`{slot}` is replaced by an entry of the topic's (or the common) list of that name, `{city}` by the city. A
slot used twice in a pattern gets two different entries, and "a" before an entry becomes "an" where it must.
Wishes are expressions over the same lists, so that they meet the messages; an entry of several words becomes
a quoted phrase in them.
"""

from __future__ import annotations

from typing import NamedTuple


class Topic(NamedTuple):
    """Sentence patterns for messages, expression patterns for wishes, and the words of both."""

    words: dict[str, tuple[str, ...]]
    messages: tuple[str, ...]
    wishes: tuple[str, ...]


def _list(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(","))


COMMON: dict[str, tuple[str, ...]] = {
    "spot": _list(
        "the station, Market Street, the old harbour, Station Road, the university, Park "
        "Avenue, the main square, the riverside, Church Street, the north side, the town hall, "
        "Bridge Street, the east end, Mill Lane, the central library, Garden Street, the "
        "waterfront, King Street, the hospital, the west gate"
    ),
    "when": _list(
        "tonight, tomorrow, this morning, right now, this weekend, on Friday, on Saturday, on "
        "Sunday, until midnight, all week, after work, at noon, from 6 pm, this evening"
    ),
    "who": _list("my sister, a friend, our neighbour, my boss, a colleague, my uncle, my flatmate, my dad"),
    "mood": _list("so good, worth the trip, what a surprise, no complaints, highly recommended, pretty decent"),
    "delay": _list("10, 15, 20, 30, 40, 45, 60, 90"),
    "size": _list("25, 36, 40, 42, 48, 52, 60, 65, 80, 95"),
}

OPENERS = ("", "", "", "", "", "Heads up: ", "Just in: ", "PSA: ", "Update: ", "FYI, ", "Psst, ")
CLOSERS = (
    "",
    "",
    "",
    "",
    "",
    "!",
    " :)",
    " Please share.",
    " Anyone else?",
    " Photos later.",
    " #local",
    " 🙌",
    " 👀",
)

TOPICS: dict[str, Topic] = {
    "food": Topic(
        {
            "dish": _list(
                "ramen, tacos, pizza, sushi, dumplings, pho, curry, falafel, burgers, paella, kebab, "
                "bibimbap, gelato, pierogi, arepas, poke, croissants, dim sum, barbecue, empanadas"
            ),
            "style": _list(
                "tonkotsu, miso, vegan, spicy, homemade, crispy, smoked, gluten free, halal, "
                "vegetarian, grilled, garlic, truffle, seafood"
            ),
            "venue": _list("food truck, night market, bakery, noodle bar, street stall, bistro, food hall, diner"),
        },
        (
            "{style} {dish} at the new {venue} near {spot} {when}, {mood}",
            "the {venue} by {spot} is giving away free {dish} {when}",
            "looking for the best {dish} in {city}, {who} swears by the {style} one near {spot}",
            "queue around the block for {style} {dish} at {spot}, {mood}",
            "opening {when}: {venue} with {dish}, {dish} and a {style} lunch menu",
            "the {venue} at {spot} ran out of {dish} again, try the {style} {dish} instead",
            "{dish} festival in {city} {when}, dozens of stalls, lots of {style} options",
            "half price {dish} for students {when} near {spot}",
        ),
        (
            "{dish} AND ({style} OR {style})",
            "{dish} {style}",
            '{dish} NOT "ran out"',
            "{dish} | {dish}",
            "{venue} AND {dish}",
            "free {dish}",
            "({dish} OR {dish}) AND {style} NOT queue",
            "{dish} festival",
        ),
    ),
    "coffee": Topic(
        {
            "drink": _list("espresso, cold brew, flat white, matcha, cappuccino, chai, cortado, bubble tea, pour over"),
            "extra": _list("oat milk, latte art, free refills, fast wifi, quiet tables, a sunny terrace, fresh scones"),
        },
        (
            "new cafe at {spot}: {drink} with {extra}, {mood}",
            "is there a cafe open {when} near {spot}? Need {drink} and {extra}",
            "{drink} tasting {when} at the roastery by {spot}, free entry",
            "the barista at {spot} makes the best {drink} in {city}",
            "cafe near {spot} now has {extra}, working from there {when}",
        ),
        (
            "{drink} NOT decaf",
            "cafe AND (wifi OR quiet)",
            "{drink} OR {drink}",
            "roastery tasting",
            "cafe {drink}",
        ),
    ),
    "music": Topic(
        {
            "genre": _list(
                "jazz, techno, indie, folk, hip hop, salsa, punk, classical, blues, metal, reggae, "
                "bossa nova, choir, flamenco, electro"
            ),
            "place": _list(
                "basement club, rooftop bar, open air stage, record shop, concert hall, town park, old brewery"
            ),
            "act": _list(
                "live band, string quartet, DJ set, open mic, jam session, big band, album launch, brass band"
            ),
        },
        (
            "live {genre} {when} at the {place} near {spot}",
            "{genre} {act} at the {place}, doors open {when}, {mood}",
            "two spare tickets for the {genre} concert in {city} {when}",
            "{act} {when}: {genre} meets {genre}, free entry at the {place}",
            "anyone going to the {genre} night at the {place} {when}?",
            "the {genre} festival at {spot} sold out, but there is a free {act} outside",
            "karaoke first, then live {genre} at the {place} {when}",
            "looking for a drummer for our {genre} group in {city}, rehearsals at {spot}",
        ),
        (
            '"live {genre}" NOT karaoke',
            "{genre} AND (concert OR festival)",
            "{genre} {act}",
            "{genre} tickets NOT sold",
            '{act} AND ({genre} OR {genre}) AND "free entry"',
            "drummer {genre}",
            "{genre} | {genre}",
        ),
    ),
    "traffic": Topic(
        {
            "cause": _list(
                "an accident, roadworks, a broken down truck, a burst pipe, a street parade, black "
                "ice, a fallen tree, a marathon, police checks, a demonstration"
            ),
            "road": _list("ring road, motorway, tunnel, old bridge, bypass, highway, main roundabout, coast road"),
            "effect": _list("closed, blocked, jammed, down to one lane, at a standstill, moving slowly"),
        },
        (
            "the {road} near {spot} is {effect} because of {cause}",
            "traffic on the {road} is {effect} {when}, take the {road} instead",
            "{cause} on the {road} towards {city}, expect {delay} minutes delay",
            "the {road} is open again after {cause}, still slow near {spot}",
            "avoid the {road} {when}: {cause}, everything {effect}",
            "parking at {spot} is impossible {when} because of {cause}",
        ),
        (
            "{road} AND (closed OR blocked)",
            '"{road}" delay',
            "accident AND ({road} OR {road})",
            "roadworks | parade",
            'traffic {road} NOT "open again"',
            "parking NOT marathon",
        ),
    ),
    "transit": Topic(
        {
            "line": _list("metro, tram, night bus, airport train, ferry, cable car, commuter train, express bus"),
            "trouble": _list("delayed, cancelled, overcrowded, diverted, on strike, suspended, back to normal"),
        },
        (
            "{line} {trouble} {when} between {spot} and the airport",
            "the {line} in {city} is {trouble}, replacement buses from {spot}",
            "ticket inspectors on the {line} near {spot}",
            "new {line} stop opens at {spot} {when}",
            "lost a grey backpack on the {line} {when}, please call me if found",
            "{line} running every {delay} minutes {when}, {trouble} after that",
        ),
        (
            "{line} AND (delayed OR cancelled OR suspended)",
            "{line} strike",
            '"replacement buses" NOT {line}',
            "lost backpack",
            "{line} | {line}",
            "{line} {trouble}",
        ),
    ),
    "weather": Topic(
        {
            "event": _list(
                "flood, storm, hail, heatwave, thunderstorm, blizzard, fog, wildfire smoke, tornado, "
                "drizzle, gale, frost, dust storm"
            ),
            "level": _list("warning, alert, watch, advisory"),
        },
        (
            "{event} {level} for {city} {when}, stay inside if you can",
            "heavy {event} near {spot} right now, be careful out there",
            "{event} moving in from the west, {level} until tomorrow",
            "the {event} is over, sun is back at {spot}",
            "power cut around {spot} after the {event}, crews are on their way",
            "{event} {when}, then {event}: typical {city}",
            "shelter open at {spot} because of the {event}",
        ),
        (
            "{event} | {event}",
            "{event} AND (warning OR alert)",
            '"{event} {level}"',
            '{event} NOT "is over"',
            '"power cut"',
            "({event} OR {event}) AND shelter",
        ),
    ),
    "sports": Topic(
        {
            "game": _list(
                "football, basketball, tennis, running, climbing, volleyball, cricket, hockey, "
                "cycling, padel, rugby, badminton, table tennis, chess"
            ),
            "kind": _list("beginners, mixed, casual, women, seniors, evening, competitive"),
        },
        (
            "we need two more for {kind} {game} {when} at {spot}",
            "{game} derby in {city} {when}, big screen at {spot}",
            "{kind} {game} group meets {when} near {spot}, all welcome",
            "used {game} gear for sale, {size} or best offer, pick up at {spot}",
            "what a final! The {city} {game} team wins in overtime",
            "{game} and {game} at {spot} {when}, still a few free places",
            "free {kind} {game} lesson {when}, bring water",
        ),
        (
            "{game} AND ({kind} OR {kind})",
            '{game} "two more"',
            "{game} derby",
            '{game} NOT "for sale"',
            "({game} OR {game}) lesson",
            '{game} "free places"',
        ),
    ),
    "housing": Topic(
        {
            "home": _list("apartment, studio, room, loft, house, flat, duplex, cottage, penthouse"),
            "feature": _list("balcony, garden, parking, elevator, furnished, fireplace, dishwasher, cellar, sea view"),
        },
        (
            "{home} near {spot}, {size} m2 with {feature} and {feature}, available {when}",
            "looking for a quiet {home} in {city} with {feature}, no agents please",
            "open house {when}: {home} with {feature} at {spot}",
            "sublet my {home} by {spot} for three months, {feature} included",
            "rent in {city} is wild: a {home} without {feature} costs more than mine with {feature}",
            "flatmate wanted, {home} with {feature}, cats welcome, five minutes from {spot}",
        ),
        (
            "{home} AND ({feature} OR {feature}) NOT sublet",
            "{home} {feature}",
            '"open house" {home}',
            "flatmate AND cats",
            "({home} OR {home}) AND {feature} NOT looking",
            "sublet {home}",
        ),
    ),
    "market": Topic(
        {
            "thing": _list(
                "bike, sofa, piano, camera, stroller, guitar, bookshelf, laptop, desk, fridge, record "
                "player, tent, sewing machine, kayak, washing machine, espresso machine"
            ),
            "state": _list("like new, vintage, slightly used, broken, unopened, well loved, cheap, handmade"),
        },
        (
            "selling my {thing}, {state}, pick up near {spot} {when}",
            "free {thing} on the pavement at {spot}, {state}",
            "wanted: {thing}, {state} is fine, can collect {when} in {city}",
            "flea market {when} at {spot}: I saw a {state} {thing} and a {thing}",
            "swap a {thing} for a {thing}? Both {state}",
            "yard sale {when} at {spot}, {thing}, toys and books",
        ),
        (
            "{thing} AND (free OR selling) NOT wanted",
            "{thing} NOT broken",
            "vintage {thing}",
            '"flea market" | "yard sale"',
            "{thing} | {thing}",
            "swap {thing}",
        ),
    ),
    "pets": Topic(
        {
            "pet": _list("dog, cat, parrot, rabbit, tortoise, puppy, kitten, ferret, beagle, tabby"),
            "look": _list("black, brown, white, ginger, spotted, grey, very shy, friendly, three legged"),
        },
        (
            "lost {pet} near {spot}, {look}, please call if you see it",
            "found a {look} {pet} at {spot} {when}, no collar",
            "pet sitter needed {when} in {city}, one {look} {pet}",
            "adoption day {when} at {spot}: {look} {pet} looking for a home",
            "the {pet} is back home, thank you {city}",
            "vet near {spot} open {when}? my {pet} ate chocolate",
        ),
        (
            "(lost OR found) AND {pet}",
            "{pet} {look} NOT adoption",
            '"adoption day"',
            "vet AND ({pet} OR {pet})",
            "sitter {pet}",
            "lost {look} {pet}",
        ),
    ),
    "culture": Topic(
        {
            "show": _list(
                "photo exhibition, improv theatre, poetry slam, film night, book fair, comedy show, "
                "ballet, gallery opening, puppet theatre, street art tour, museum night, opera"
            ),
            "theme": _list(
                "local history, climate, comics, science fiction, horror, migration, textiles, architecture"
            ),
        },
        (
            "{show} about {theme} {when} near {spot}, {mood}",
            "volunteers wanted for the {show} in {city} {when}",
            "last tickets for the {show} {when}, then a talk on {theme}",
            "{who} took me to a {show} on {theme} at {spot}, {mood}",
            "free {show} for kids {when} at {spot}",
            "the {show} in {city} is cancelled, tickets stay valid",
        ),
        (
            "{show} NOT cancelled",
            "{theme} AND ({show} OR {show})",
            "volunteers {show}",
            "tickets AND {show}",
            "free kids NOT football",
            "talk {theme}",
        ),
    ),
    "jobs": Topic(
        {
            "job": _list(
                "waiter, nurse, carpenter, translator, driver, gardener, teacher, electrician, cook, "
                "welder, cashier, developer, plumber, lifeguard, tutor"
            ),
            "terms": _list("part time, full time, night shift, weekend, remote, internship, seasonal, well paid"),
        },
        (
            "hiring: {job}, {terms}, near {spot}, start {when}",
            "we are looking for a {job} in {city}, {terms}, no experience needed",
            "can anyone recommend a good {job} around {spot}? It is urgent",
            "job fair {when} at {spot}: {job}, {job} and more",
            "experienced {job} looking for {terms} work in {city}",
        ),
        (
            "hiring AND ({job} OR {job})",
            "{job} {terms}",
            '{job} NOT "no experience"',
            "recommend {job}",
            '"job fair"',
            "urgent & {job}",
        ),
    ),
}
