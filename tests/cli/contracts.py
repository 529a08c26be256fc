# SPDX-License-Identifier: MIT
# contracts.py TINY.gguf PROGRAM...: a file with one key more. One that may change the result and is
# not known is refused by name, one that says nothing is not.
import struct
import subprocess
import sys

source = open(sys.argv[1], 'rb').read()
program = sys.argv[2:]
U32, F32 = 4, 6
failed = False


def with_key(name, kind, value):
    """Names of 16 bytes and values of 4 keep the alignment of all that follows."""
    assert len(name) == 16
    body = {U32: '<I', F32: '<f'}[kind]
    entry = struct.pack('<Q', len(name)) + name.encode() + struct.pack('<I', kind) + struct.pack(body, value)
    n_keys = struct.unpack_from('<Q', source, 16)[0]
    return source[:16] + struct.pack('<Q', n_keys + 1) + entry + source[24:]


for name, kind, value, taken in [
        ('prism.hadamard.b', U32, 1024, False),
        ('prism.hadamard.b', U32, 0, True),
        ('llama.logit_scal', F32, 2.0, False),
        ('llama.softcappin', F32, 30.0, False),
        ('llama.softcappin', F32, 0.0, True),
        ('llama.logit_scale'[:16], F32, 1.0, False),
        ('general.some_not', U32, 7, True),
        ('tokenizer.whatev', U32, 7, True),
        ('mradermacher.ver', U32, 2, True),
        ('rotation.of_cols', F32, 1.0, False),
]:
    with open('contract.gguf', 'wb') as out:
        out.write(with_key(name, kind, value))
    result = subprocess.run(program + ['run', '-m', 'contract.gguf', '--no-cache', '-p', 'a', '-n', '1'],
                            capture_output=True, text=True)
    if taken != (result.returncode == 0) or (not taken and (result.returncode != 3 or name not in result.stderr)):
        print(f'{name} = {value}: status {result.returncode}: {result.stderr}')
        failed = True
sys.exit(failed)
