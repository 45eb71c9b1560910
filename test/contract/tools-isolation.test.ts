/** Checks what code in the sandbox cannot do. Canary servers on this host record every connection that reaches them. */
import { randomUUID } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readdir, readFile as readHostFile, rm, writeFile as writeHostFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server as TcpServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { ALL_TOOLS, bash, javascript, python, readFile, scripted, toolRunner } from '../support/tool-run.ts'

const CANARY = `canary-${randomUUID()}`
const FILE_NAME = `errand-${randomUUID()}.txt`
const ABSTRACT = `errand-${randomUUID()}`

let provider: FakeProvider
let server: Server
let tcp: TcpServer
let abstract: TcpServer
let udp: Socket
const planted: string[] = []
/** The canaries that were reached. */
const reached: string[] = []

beforeAll(async () => {
  provider = await openFakeProvider()
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake', apiKeyEnv: 'PLANTED_MODEL_KEY' }
  const limits = { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 }
  server = await startServer({
    provider,
    config: { limits, models: { 'svc-3.5-flash': model } },
    env: { PLANTED_MODEL_KEY: `${CANARY}-model-key`, PLANTED_SECRET: `${CANARY}-secret` },
  })
  const canary = (name: string) =>
    createServer((socket) => {
      reached.push(name)
      socket.destroy()
    })
  tcp = canary('tcp')
  tcp.listen(0, '0.0.0.0')
  abstract = canary('abstract')
  abstract.listen(`\0${ABSTRACT}`)
  udp = createSocket('udp4', () => void reached.push('udp'))
  udp.bind(0)
  await Promise.all([once(tcp, 'listening'), once(abstract, 'listening'), once(udp, 'listening')])
  for (const directory of [
    server.dataDir,
    '/root',
    '/home',
    '/tmp',
    '/var/tmp',
    '/etc',
    '/opt',
    '/srv',
    '/run',
    '/dev/shm',
  ]) {
    const path = join(directory, FILE_NAME)
    await writeHostFile(path, CANARY).then(
      () => planted.push(path),
      () => undefined, // Not writable by us: this directory gets no file.
    )
  }
})
afterAll(async () => {
  for (const path of planted) await rm(path, { force: true })
  for (const canary of [tcp, abstract, udp]) canary?.close()
  await server?.stop()
  await provider?.close()
})

const run = toolRunner(
  () => server,
  () => provider,
)

async function outputs(...turns: Parameters<typeof run>[0]): Promise<readonly string[]> {
  const { answer, body, outputs: all } = await run(turns)
  expect(answer.status, answer.text).toBe(200)
  expect(body.status, answer.text).toBe('completed')
  return all
}

describe('the network', () => {
  it('reaches no canary: not on loopback, on any address of the host, or through abstract sockets', async () => {
    const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
    const addresses = ['127.0.0.1', 'localhost', '0.0.0.0', ...own.map(({ address }) => address)]
    const tcpPort = (tcp.address() as AddressInfo).port
    const servers = [tcpPort, Number(new URL(server.url).port), provider.port]
    const before = provider.requests.length
    const [inPython, inBash, inNode] = await outputs(
      python(`
import socket
def check(what, act):
    try: act(); print(what, 'REACHED')
    except OSError as error: print(what, 'refused:', error)
for address in ${JSON.stringify(addresses)}:
    for port in ${JSON.stringify(servers)}:
        check((address, port), lambda: socket.create_connection((address, port), 2).close())
    for family in (socket.AF_INET, socket.AF_INET6):
        try: socket.socket(family, socket.SOCK_DGRAM).sendto(b'x', (address, ${udp.address().port}))
        except OSError: pass
def abstract():
    s = socket.socket(socket.AF_UNIX)
    s.connect('\\0${ABSTRACT}')
check('abstract', abstract)
`),
      bash(`(exec 3<>/dev/tcp/127.0.0.1/${tcpPort}) && echo REACHED || echo refused`),
      javascript(
        `require('node:net').connect(${tcpPort}, '127.0.0.1').on('connect', () => console.log('REACHED')).on('error', (e) => console.log(e.code))`,
      ),
    )
    expect(inPython).toContain('refused')
    for (const output of [inPython, inBash, inNode]) expect(output).not.toContain('REACHED')
    expect(inBash).toContain('refused')
    // The canaries work: the host itself reaches them.
    await fetch(`http://127.0.0.1:${tcpPort}`).catch(() => undefined)
    expect(reached).toEqual(['tcp'])
    expect(provider.requests.length - before).toBe(4)
  })

  it('has only the loopback interface, no route, and no DNS', async () => {
    const [interfaces, routes, names] = await outputs(
      python("[line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line]"),
      bash('tail -n +2 /proc/net/route; grep -v " lo$" /proc/net/ipv6_route; echo end'),
      python(`
import socket
try: print('RESOLVED', socket.getaddrinfo('errand-canary.invalid', 80))
except socket.gaierror as error: print('refused:', error)
`),
    )
    expect(interfaces!.trim()).toBe("['lo']")
    expect(routes!.trim()).toBe('end')
    expect(names).toContain('refused')
  })
})

describe('secrets of the server', () => {
  it('are in no environment, command line or file that code can see', async () => {
    const look = `env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; echo end`
    const [inBash, inPython, inNode, searched] = await outputs(
      bash(look),
      python('import os\nprint(dict(os.environ))'),
      javascript('console.log(process.env, process.argv)'),
      bash(
        'grep -rlsE "canary-[0-9a-f]{8}-|errand_sk_" /etc /run /tmp /workspace /errand /dev/shm /usr/local /var /opt /srv 2>/dev/null; echo end',
      ),
    )
    expect(inBash).toMatch(/^end$/m)
    for (const output of [inBash, inPython, inNode]) {
      expect(output).toMatch(/PATH/)
      expect(output).not.toContain(CANARY)
      expect(output).not.toContain('PLANTED')
      expect(output).not.toContain(server.key)
      expect(output).not.toContain('errand_sk_')
      expect(output).not.toContain('ERRAND_')
      expect(output).not.toContain(server.dataDir)
    }
    // The source of the step may be stored there, but no secret.
    for (const path of searched!.split('\n')) expect(path).toMatch(/^(end|\/run\/errand\/.*)?$/)
  })

  it('reach the model provider, which proves that the test would find them', () => {
    expect(provider.requests[0]?.headers.authorization).toBe(`Bearer ${CANARY}-model-key`)
  })

  it('are in no answer and no trace', async () => {
    const { answer } = await run([bash('env'), readFile('.')])
    expect(answer.text).not.toContain(CANARY)
    expect(JSON.stringify(provider.requests.map(({ body }) => body))).not.toContain(`${CANARY}-`)
  })
})

describe('the files of the host', () => {
  it('cannot be read: /etc/shadow, the data directory, /root, /home, the host’s /tmp', async () => {
    expect(planted.length).toBeGreaterThan(3)
    const paths = [...planted, '/etc/shadow', '/etc/gshadow', join(server.dataDir, 'errand.yaml')]
    const [opened, found, listed, hostRoot] = await outputs(
      python(`
for path in ${JSON.stringify(paths)}:
    for prefix in ('', '/proc/1/root', '/proc/self/root', '/proc/1/cwd/..'):
        try: print(path, 'READ', open(prefix + path).read())
        except OSError as error: print(path, 'refused:', error.strerror)
`),
      bash(`find / -path /proc -prune -o -name '${FILE_NAME}' -print 2>/dev/null; echo end`),
      bash('ls -A /root /home /var/lib /boot /mnt /media 2>/dev/null; echo end'),
      bash(`cat /proc/*/root/etc/shadow /proc/*/cwd/${FILE_NAME} 2>/dev/null; echo end`),
    )
    expect(opened!.match(/refused/g)).toHaveLength(paths.length * 4)
    expect(opened).not.toContain('READ')
    for (const output of [found, listed, hostRoot]) expect(output!.trim()).toBe('end')
  })

  it('cannot be read by file_read either', async () => {
    for (const output of await outputs(...planted.map((path) => readFile(path)))) expect(output).not.toContain(CANARY)
  })

  it('cannot be written: only the working directory and temporary directories are writable', async () => {
    const [written] = await outputs(
      bash(
        'for d in / /usr /usr/bin /usr/local/bin /etc /dev /errand /errand/bin /lib /proc/sys/kernel; do touch $d/x 2>/dev/null && echo WROTE $d; done; echo end',
      ),
    )
    expect(written!.trim()).toBe('end')
  })
})

describe('privileges', () => {
  it('are absent: no capabilities, no way to gain them, filtered system calls, no namespaces, mounts or root', async () => {
    const [status, tried] = await outputs(
      bash('grep -E "^(Cap(Eff|Prm|Bnd|Inh|Amb)|NoNewPrivs|Seccomp):" /proc/self/status; id -u'),
      bash(
        'for c in "unshare -Ur true" "unshare -n true" "mount -t tmpfs none /tmp" "su root -c true" "sudo -n true" "nsenter -t 1 -m true" "chroot / true" "mknod /tmp/d b 1 1" "dmesg" "kill -9 1"; do $c >/dev/null 2>&1 && echo "DONE $c"; done; echo end',
      ),
    )
    expect(status!.match(/^Cap\w+:\s*0+$/gm)).toHaveLength(5)
    expect(status).toMatch(/^NoNewPrivs:\s*1$/m)
    expect(status).toMatch(/^Seccomp:\s*2$/m)
    expect(status!.trim().split('\n').at(-1)).not.toBe('0')
    // PID 1 of the namespace ignores signals from inside: kill fails or has no effect.
    expect(tried!.replace(/^DONE kill -9 1\n/m, '').trim()).toBe('end')
  })
})

describe('a sandbox', () => {
  it('is new for each interaction, also in a continued conversation', async () => {
    const leave = bash(
      'echo left > left.txt; echo left > /tmp/left.txt; echo left > outputs/left.txt; echo left > /dev/shm/left.txt',
    )
    const first = await run([leave, python('left = 1')])
    expect(first.body.status).toBe('completed')
    const look = [
      bash('ls -A . outputs /tmp /dev/shm | grep left; echo end'),
      python('"left" in globals()'),
      bash('ps ax 2>/dev/null | grep -c "[l]eft"; true'),
    ]
    for (const request of [{}, { previousInteractionId: first.body.interactionId }]) {
      const { answer, outputs: all } = await run(look, request)
      expect(answer.status, answer.text).toBe(200)
      expect(all[0]!.trim()).toBe('end')
      expect(all[1]!.trim()).toBe('False')
    }
  })

  it('does not see files or processes of other sandboxes', async () => {
    const marker = `neighbour-${randomUUID()}`
    const instruction = scripted(provider, [
      bash(
        `echo ${marker} > /workspace/${marker}; echo ${marker} > /tmp/${marker}; echo up; exec -a ${marker} sleep 1000`,
      ),
    ])
    const neighbour = await server.stream('/v1beta/interactions:stream', { instruction, tools: ALL_TOOLS })
    for await (const { event, data } of neighbour.events) if (event === 'tool_output' && data.text.includes('up')) break
    const [seen] = await outputs(
      bash(
        `ls -A /workspace /tmp; cat /proc/*/cmdline | tr '\\0' ' ' | grep -v "${marker.slice(0, -1)}[${marker.at(-1)}]" ; echo end`,
      ),
    )
    expect(seen).not.toContain(marker)
    expect(seen).toMatch(/^end$/m)
    await server.post(`/v1beta/interactions/${neighbour.headers.get('x-interaction-id')}:cancel`)
  })

  it.each(['completed', 'cancelled', 'failed'])('leaves no process on the host once the run is %s', async (how) => {
    const marker = `marker-${randomUUID()}`
    const code = `
export MARKER=${marker}
(exec -a ${marker} sleep 10000) &
setsid nohup bash -c 'trap "" TERM HUP INT; while :; do sleep 1; done' >/dev/null 2>&1 &
python3 -c 'import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(10000)' &
echo up
${how === 'completed' ? '' : 'while :; do sleep 1; done'}`
    // The gate holds the second turn until the test has seen the processes, which proves that it can find them.
    const { promise: hold, resolve: go } = Promise.withResolvers<void>()
    const instruction = `[${randomUUID()}]`
    provider.when(instruction, { toolCalls: [bash(code)] }, { text: 'Done.', hold })
    const policy = { maxTurnDuration: how === 'failed' ? 3 : 600 }
    const stream = await server.stream('/v1beta/interactions:stream', { instruction, tools: ALL_TOOLS, policy })
    const id = stream.headers.get('x-interaction-id')
    let seen: string[] = []
    for await (const { event, data } of stream.events) {
      if (event === 'tool_output' && data.text.includes('up')) {
        seen = await processesWith(marker)
        if (how === 'cancelled') {
          expect((await server.post(`/v1beta/interactions/${id}:cancel`)).status).toBe(200)
          expect(await processesWith(marker)).toEqual([])
        }
        go()
      }
      if (event === 'completed') {
        expect(data.status).toBe(how)
        expect(await processesWith(marker)).toEqual([])
      }
    }
    expect(seen.length).toBeGreaterThan(0)
  })
})

/** Returns the processes of this host whose command line or environment contains the marker. */
async function processesWith(marker: string): Promise<string[]> {
  const found: string[] = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    for (const file of ['cmdline', 'environ']) {
      const text = await readHostFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')
      if (text.includes(marker)) found.push(`${pid} ${text.replaceAll('\0', ' ').slice(0, 200)}`)
    }
  }
  return found
}
