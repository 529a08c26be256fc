# SPDX-License-Identifier: MIT
# Downloads by https: a hub whose certificate no known authority has signed is refused, unless SSL_CERT_FILE names it.
. "$SOURCE/tests/cli/lib.sh"
serve=$1
whit doctor --json 2>/dev/null | grep -q '"hub_library": "libcurl' || { echo "no libcurl: no downloads to test"; exit 77; }
for tool in openssl python3; do command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }; done
export XDG_CACHE_HOME=$PWD/cache HF_HOME=$PWD/none no_proxy=127.0.0.1,localhost
unset HF_TOKEN HF_TOKEN_PATH SSL_CERT_FILE CURL_CA_BUNDLE
rm -rf cache files pipe address port
mkdir files
tiny files/tiny-f32.gguf
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost >openssl.log 2>&1 || { cat openssl.log; exit 1; }
mkfifo pipe
$EMULATOR "$serve" owner/tiny-GGUF files <pipe >address 2>requests &
hub=$!
exec 9>pipe
while [ ! -s address ]; do sleep 0.05; done

# TLS before the hub: every connection is decrypted and passed on. An address of a port of the hub in its answers becomes
# one of TLS, too.
python3 - "$(sed 's/.*://' address)" >port <<'END' &
import re, socket, ssl, sys, threading

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("certificate.pem", "key.pem")
fronts = {}

def start(work, *arguments):
    threading.Thread(target=work, args=arguments, daemon=True).start()

def front(port):
    """The port of TLS for a port of the hub."""
    if port not in fronts:
        listening = socket.create_server(("127.0.0.1", 0))
        fronts[port] = listening.getsockname()[1]
        start(accept, listening, port)
    return fronts[port]

def accept(listening, port):
    while True:
        start(serve, listening.accept()[0], port)

def safe(address):
    return f"https://localhost:{front(int(address.group(1)))}".encode()

def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(re.sub(rb"http://127\.0\.0\.1:(\d+)", safe, data))
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass

def serve(plain, port):
    try:
        client = context.wrap_socket(plain, server_side=True)
    except OSError:
        return
    hub = socket.create_connection(("127.0.0.1", port))
    start(copy, client, hub)
    copy(hub, client)
    client.close()

print(front(int(sys.argv[1].strip("/"))), flush=True)
threading.Event().wait()
END
tls=$!
while [ ! -s port ]; do sleep 0.05; done
HF_ENDPOINT=https://localhost:$(cat port)
export HF_ENDPOINT

expect 5 whit pull owner/tiny-GGUF
one_line "$HF_ENDPOINT" "certificate\|Certificate\|Cert verify\|SSL"
expect 5 env SSL_CERT_FILE="$PWD/absent.pem" $EMULATOR "$WHIT" pull owner/tiny-GGUF
one_line "$HF_ENDPOINT"
expect 0 env SSL_CERT_FILE="$PWD/certificate.pem" $EMULATOR "$WHIT" pull owner/tiny-GGUF
expect 0 whit run -m tiny-GGUF -n 2 -p "a"
expect 0 whit rm tiny-GGUF
expect 0 env CURL_CA_BUNDLE="$PWD/certificate.pem" $EMULATOR "$WHIT" pull owner/tiny-GGUF
kill $tls
exec 9>&-
wait $hub
finish
