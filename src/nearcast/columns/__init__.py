"""Messages and subscriptions as sealed columns, and the pairs that come out: public and stable."""

from nearcast.columns.messages import MessageBatch
from nearcast.columns.pairs import Pairs
from nearcast.columns.seal import Rejected
from nearcast.columns.subscriptions import Conditions, SubscriptionColumns

__all__ = ["Conditions", "MessageBatch", "Pairs", "Rejected", "SubscriptionColumns"]
