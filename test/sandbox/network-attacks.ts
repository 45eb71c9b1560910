/** Attempts of code to reach a network, in three languages. Prints the name of each that succeeds. */
import type { Language, Sandbox } from '../../src/sandbox/port.ts'

export interface NetworkTargets {
  readonly addresses: readonly string[]
  readonly port: number
  readonly abstract: string
}

/** Returns the attempts that succeeded from the sandbox's view. The canaries show what arrived. */
export async function attackNetwork(sandbox: Sandbox, targets: NetworkTargets): Promise<string[]> {
  const { signal } = new AbortController()
  const attack = (language: Language, code: string) => {
    return sandbox.exec({ key: `attack in ${language}`, language, code, timeoutMs: 60_000 }, () => {}, signal)
  }
  const told = `targets = ${JSON.stringify(targets)}\n`
  const outputs = [
    await attack('python', told + IN_PYTHON),
    await attack('javascript', `const ${told}${IN_JAVASCRIPT}`),
    await attack('bash', inBash(targets)),
  ].map(({ output, end }) => (end.kind === 'exit' && end.code === 0 ? output : `broken: ${output} ${end.kind}`))
  if (outputs.some((output) => !/^over$/m.test(output))) throw new Error(`An attack did not end: ${outputs.join('\n')}`)
  return outputs.join('\n').match(/^(came through|broken): .*$/gm) ?? []
}

const IN_PYTHON = `
import fcntl, os, socket, struct
def attempt(name, action):
    try: action()
    except (OSError, ValueError): return
    print('came through:', name)
def talk(family, kind, protocol, address):
    with socket.socket(family, kind, protocol) as s:
        s.settimeout(2)
        s.connect(address)  # also for datagrams, so that a refusal is reported immediately
        if kind != socket.SOCK_STREAM:
            s.send(b'x' * 32)
            s.recv(1)
query = b'\\x12\\x34\\x01\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6secret\\7invalid\\0\\0\\1\\0\\1'
def ask(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        s.connect((address, 53))
        s.send(query)
        s.recv(512)
for address in targets['addresses']:
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    for port in (targets['port'], 53, 80, 443, 2375, 8080):
        attempt(f'TCP {address} {port}', lambda: talk(family, socket.SOCK_STREAM, 0, (address, port)))
        attempt(f'UDP {address} {port}', lambda: talk(family, socket.SOCK_DGRAM, 0, (address, port)))
    echo = 58 if family == socket.AF_INET6 else 1
    attempt(f'ping {address}', lambda: talk(family, socket.SOCK_DGRAM, echo, (address, 0)))
    attempt(f'raw {address}', lambda: talk(family, socket.SOCK_RAW, echo, (address, 0)))
    attempt(f'SCTP {address}', lambda: talk(family, socket.SOCK_STREAM, 132, (address, targets['port'])))
    if family == socket.AF_INET: attempt(f'DNS {address}', lambda: ask(address))
for name in ('secret.invalid', 'metadata.google.internal', 'localhost.localdomain'):
    attempt(f'name {name}', lambda: socket.getaddrinfo(name, 80))
def abstract(kind):
    with socket.socket(socket.AF_UNIX, kind) as s: s.connect('\\0' + targets['abstract'])
attempt('abstract stream', lambda: abstract(socket.SOCK_STREAM))
attempt('abstract datagram', lambda: abstract(socket.SOCK_DGRAM))
for path in ('/var/run/docker.sock', '/run/docker.sock', '/run/dbus/system_bus_socket', '/run/systemd/private', '/tmp/.X11-unix/X0'):
    def unix():
        with socket.socket(socket.AF_UNIX) as s: s.connect(path)
    attempt(f'unix {path}', unix)
for family, name in ((17, 'packet'), (40, 'vsock'), (16, 'netlink audit'), (38, 'alg'), (31, 'bluetooth'), (29, 'can'), (44, 'xdp')):
    attempt(f'family {name}', lambda: socket.socket(family, socket.SOCK_RAW, 9 if family == 16 else 0).close())
def raise_interface():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack('16sh22x', b'eth0', 1))
attempt('an interface raised', raise_interface)
def add_route():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.bind((0, 0))
        body = struct.pack('=BBBBBBBBI', 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack('=HHI', 8, 4, 1)
        s.send(struct.pack('=IHHII', 16 + len(body), 24, 0x0405 | 0x400, 1, 0) + body)
        if struct.unpack('=i', s.recv(4096)[16:20])[0] < 0: raise OSError('refused')
attempt('a route added', add_route)
attempt('broadcast', lambda: talk(socket.AF_INET, socket.SOCK_DGRAM, 0, ('255.255.255.255', targets['port'])))
attempt('multicast', lambda: talk(socket.AF_INET, socket.SOCK_DGRAM, 0, ('224.0.0.1', targets['port'])))
print('interfaces:', [line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line])
print('over')`

const IN_JAVASCRIPT = `
const net = require('node:net'), dgram = require('node:dgram'), dns = require('node:dns').promises
const attempt = (name, action) => action().then(() => console.log('came through: ' + name), () => {})
for (const address of targets.addresses) {
  const host = address.includes(':') ? '[' + address + ']' : address
  await attempt('fetch ' + address, () => fetch('http://' + host + ':' + targets.port, { signal: AbortSignal.timeout(2000) }))
  await attempt('net ' + address, () => new Promise((resolve, reject) => net.connect(targets.port, address, resolve).on('error', reject)))
  await attempt('dgram ' + address, () => new Promise((resolve, reject) => {
    const socket = dgram.createSocket(address.includes(':') ? 'udp6' : 'udp4').on('error', reject).on('message', resolve)
    socket.connect(targets.port, address, (error) => (error ? reject(error) : socket.send('x')))
    setTimeout(() => reject(new Error()), 2000)
  }))
}
for (const name of ['secret.invalid', 'metadata.google.internal']) await attempt('resolve ' + name, () => dns.resolve4(name))
await attempt('lookup', () => dns.lookup('secret.invalid'))
console.log('over')`

function inBash({ addresses, port }: NetworkTargets): string {
  const tries = addresses
    .filter((address) => !address.includes(':'))
    .map((address) => `(exec 3<>/dev/tcp/${address}/${port}) 2>/dev/null && echo "came through: /dev/tcp/${address}"`)
  return `${tries.join('\n')}
for tool in curl wget nc ping; do command -v $tool >/dev/null || continue
  case $tool in
    curl|wget) timeout 3 $tool http://${addresses[0]}:${port}/ >/dev/null 2>&1 && echo "came through: $tool" ;;
    nc) timeout 3 nc -z ${addresses[0]} ${port} 2>/dev/null && echo "came through: nc" ;;
    ping) timeout 3 ping -c 1 ${addresses[0]} >/dev/null 2>&1 && echo "came through: ping" ;;
  esac
done
echo over`
}
