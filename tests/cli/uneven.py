# SPDX-License-Identifier: MIT
# uneven.py FROM.gguf TO.gguf SIZE: the same model of f32 tensors, but for a weight in each row of v and of o that
# becomes SIZE times the row's root mean square.
import random
import struct
import sys

data = bytearray(open(sys.argv[1], 'rb').read())
size = float(sys.argv[3])
random.seed(1)
at = 24
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def number(form, n_bytes):
    global at
    at += n_bytes
    return struct.unpack_from('<' + form, data, at - n_bytes)[0]


def text():
    global at
    n_bytes = number('Q', 8)
    at += n_bytes
    return bytes(data[at - n_bytes:at]).decode()


def skip(kind):
    global at
    if kind == 8:
        text()
    elif kind == 9:
        inner, n = number('I', 4), number('Q', 8)
        for _ in range(n):
            skip(inner)
    else:
        at += SIZES[kind]


n_tensors, n_keys = struct.unpack_from('<QQ', data, 8)
alignment = 32
for _ in range(n_keys):
    name, kind = text(), number('I', 4)
    assert name != 'general.alignment'
    skip(kind)
tensors = []
for _ in range(n_tensors):
    name, n_dims = text(), number('I', 4)
    tensors.append((name, [number('Q', 8) for _ in range(n_dims)], number('I', 4), number('Q', 8)))
base = (at + alignment - 1) // alignment * alignment
n_changed = 0
for name, shape, kind, offset in tensors:
    if not name.endswith(('attn_v.weight', 'attn_output.weight')):
        continue
    assert kind == 0, f'{name} is not f32'
    n_cols, n_rows = shape
    values = list(struct.unpack_from(f'<{n_rows * n_cols}f', data, base + offset))
    for row in range(0, n_rows * n_cols, n_cols):
        mean = (sum(x * x for x in values[row:row + n_cols]) / n_cols) ** 0.5
        values[row + random.randrange(n_cols)] = random.choice((-size, size)) * mean
    struct.pack_into(f'<{n_rows * n_cols}f', data, base + offset, *values)
    n_changed += 1
assert n_changed
open(sys.argv[2], 'wb').write(data)
