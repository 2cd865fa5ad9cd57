"""nearcast: tell, for every message, who wants it: standing wishes made of words and a place."""

from nearcast.columns import MessageBatch, Pairs, SubscriptionColumns
from nearcast.errors import NearcastError
from nearcast.geo import box, circle, earth, multipolygon, plane, point, polygon
from nearcast.hub import Delivery, Hub
from nearcast.model import Message, Subscription

__version__ = "0.1.0"

__all__ = [
    "Delivery",
    "Hub",
    "Message",
    "MessageBatch",
    "NearcastError",
    "Pairs",
    "Subscription",
    "SubscriptionColumns",
    "box",
    "circle",
    "earth",
    "multipolygon",
    "plane",
    "point",
    "polygon",
]
