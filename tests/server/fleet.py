# SPDX-License-Identifier: MIT
"""A subscriber of KV events, as a router has one: the blocks that a replica holds, from events and replays."""
import msgpack
import zmq

BLOCK = 64


class Subscriber:
    """Follows the topic of one model. `held`: hash -> (parent, tokens) of the blocks that the replica has; `heard`: the
    last number that came by the subscription, not by a replay."""

    def __init__(self, events, replay, topic=""):
        self.context = zmq.Context.instance()
        self.events = self.context.socket(zmq.SUB)
        self.events.setsockopt_string(zmq.SUBSCRIBE, topic)
        self.events.connect(events)
        self.replay_at, self.topic = replay, topic.encode()
        self.held, self.next, self.heard = {}, 0, -1
        self.n_events = self.n_stored = self.n_removed = self.n_cleared = self.n_gaps = self.n_lost = 0
        self.loras = set()

    def close(self):
        self.events.close(0)

    def apply(self, number, batch):
        stamp, events, rank = msgpack.unpackb(batch)
        assert isinstance(stamp, float) and rank == 0, (stamp, rank)
        self.next = number + 1
        for kind, *fields in events:
            self.n_events += 1
            if kind == "BlockStored":
                hashes, parent, tokens, size, lora, medium, name = fields
                assert len(hashes) == 1 and size == len(tokens) == BLOCK and medium == "cpu", fields
                assert (lora is None) == (name is None), fields
                assert hashes[0] not in self.held, "stored twice"
                self.held[hashes[0]] = (parent, tuple(tokens))
                self.loras.add((lora, name))
                self.n_stored += 1
            elif kind == "BlockRemoved":
                assert self.n_lost or fields[0][0] in self.held, "removed, but never stored"
                self.held.pop(fields[0][0], None)
                self.n_removed += 1
            else:
                assert kind == "AllBlocksCleared" and not fields, (kind, fields)
                self.held.clear()
                self.n_cleared += 1

    def replay(self):
        """Asks for everything from the next number on."""
        socket = self.context.socket(zmq.DEALER)
        socket.connect(self.replay_at)
        socket.send_multipart([b"", self.next.to_bytes(8, "big"), *([self.topic] if self.topic else [])])
        while True:
            assert socket.poll(60000), "no replay"
            _, number, batch = socket.recv_multipart()
            if not batch:
                break
            number = int.from_bytes(number, "big")
            if number > self.next:
                if self.next:
                    self.held.clear()  # what came between is not kept any more, or the replica was started again
                    self.n_lost += 1
            self.apply(number, batch)
        socket.close(0)

    def receive(self, wait_ms=0):
        """Takes what has arrived; asks for a replay where numbers are missing."""
        while self.events.poll(wait_ms):
            topic, number, batch = self.events.recv_multipart()
            assert topic.startswith(b"kv@") and self.topic in (b"", topic), topic
            self.topic = self.topic or topic
            number, wait_ms = int.from_bytes(number, "big"), 0
            self.heard = number
            if number > self.next:
                self.n_gaps += 1
                self.replay()
            elif number == self.next:
                self.apply(number, batch)  # smaller numbers were replayed already

    def chain(self, ids):
        """Number of tokens of the longest known prefix."""
        parent, n = None, 0
        by_place = {value: key for key, value in self.held.items()}
        while n + BLOCK <= len(ids):
            found = by_place.get((parent, tuple(ids[n:n + BLOCK])))
            if found is None:
                break
            parent, n = found, n + BLOCK
        return n
