"""Python programs that the contract cases run in a sandbox: some of them hostile."""

from __future__ import annotations

FOREVER = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
HOG = "a = [bytearray(1 << 20) for _ in range(400)]\nprint('got it all')\n"
BIG_FILE = "with open('big', 'wb') as f:\n    for _ in range(32): f.write(bytes(1 << 20))\n"
BOMB = """
import os, time
made = 0
try:
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(30)
        made += 1
finally:
    print(made, flush=True)
"""
ESCAPE = """
import os, subprocess
tick = "import time\\nfor n in range(600):\\n    open('tick', 'w').write(str(n)); time.sleep(0.05)"
subprocess.Popen(["python3", "-c", tick], start_new_session=True)
while not os.path.exists("tick"): pass
"""
DEEP = "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')\n"
CONNECT = "import socket, sys\nsocket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)\n"
ECHO = """
import os, socket
host, port = os.environ["GATEWAY"].split(":")
def call(text):
    s = socket.create_connection((host, int(port)), 5)
    s.sendall(text)
    s.shutdown(socket.SHUT_WR)
    return b"".join(iter(lambda: s.recv(4096), b""))
print(call(b"one"), call(b"two"))
"""
TUNNELS = """
import os, socket, sys
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["https_proxy"])
for target in sys.argv[1:]:
    s = socket.create_connection((proxy.hostname, proxy.port), 5)
    s.sendall(f"CONNECT {target} HTTP/1.1\\r\\n\\r\\n".encode())
    said = b"".join(iter(lambda: s.recv(4096), b"")).decode()
    print(said.split()[1], said.splitlines()[-1])
"""
