/** Checks `network`: which hosts programs in a sandbox can reach, with real clients, and what the audit records. */
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { auditOf } from '../support/audit.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { bash, javascript, python, type ToolRunner, toolRunner } from '../support/tool-run.ts'

const PATH = '/v1beta/interactions'
/** Clears NO_PROXY: `*.localhost` resolves to this machine, and clients would bypass the proxy for it. */
const CLEAR = 'export NO_PROXY= no_proxy=;'

let site: HttpServer
let port: number
let provider: FakeProvider
let server: Server
let run: ToolRunner
const asked: string[] = []
beforeAll(async () => {
  site = createServer((request, response) => {
    asked.push(`${request.method} ${request.headers.host}${request.url}`)
    request.resume().on('end', () => response.end(`served ${request.url}`))
  })
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  port = (site.address() as AddressInfo).port
  provider = await openFakeProvider()
  server = await startServer({
    provider,
    config: {
      sandbox: { pool: 1, network: [`*.site.localhost:${port}`, 'api.example.com'], networkBytes: 2_000_000 },
      egress: { allowPrivate: [`127.0.0.1:${port}`] },
    },
  })
  run = toolRunner(
    () => server,
    () => provider,
  )
})
afterAll(async () => {
  await server.stop()
  await provider.close()
  site.close()
  site.closeAllConnections()
})

const allow = () => ({ network: { allow: [`a.site.localhost:${port}`] } })

describe('a run with an allowlist', () => {
  it('reaches its hosts with curl, Python and Node, and the audit records each connection', async () => {
    const url = `http://a.site.localhost:${port}`
    const { body, outputs } = await run(
      [
        bash(`${CLEAR} curl -sS ${url}/curl`),
        python(
          `import os, urllib.request\nos.environ.pop('no_proxy'); os.environ.pop('NO_PROXY')\nprint(urllib.request.urlopen('${url}/python').read().decode())`,
        ),
        bash(`${CLEAR} node -e 'fetch("${url}/node").then((r) => r.text()).then(console.log)'`),
        bash('echo "$https_proxy $HTTP_PROXY $NODE_USE_ENV_PROXY"; ls -a /workspace'),
      ],
      allow(),
    )
    expect(outputs.slice(0, 3)).toEqual(['served /curl', 'served /python', 'served /node'])
    expect(outputs[3]).toBe('http://127.0.0.1:3128 http://127.0.0.1:3128 1\n.\n..\noutputs')
    expect(body.resolved.network).toEqual(allow().network)
    const entries = await auditOf(server, body.interactionId)
    expect(entries).toEqual([{ kind: 'sandbox', host: 'a.site.localhost', port, outcome: 'dialled', count: 3 }])
  })

  it('names the allowlist to the model; other hosts are refused with a message, without a DNS lookup, and recorded in the audit', async () => {
    const { body, outputs } = await run(
      [
        bash(`${CLEAR} curl -sS http://b.site.localhost:${port}/`),
        bash(`${CLEAR} curl -sS https://b.site.localhost:${port}/ 2>&1 | cat`),
        bash(
          `${CLEAR} curl -sS http://127.0.0.1:${port}/; curl -sS http://169.254.169.254/latest; echo; cat /etc/resolv.conf`,
        ),
        python(`import socket\nsocket.create_connection(('127.0.0.1', ${port}))`),
        python(`import socket\nsocket.getaddrinfo('a.site.example', 80)`),
      ],
      allow(),
    )
    expect(outputs[0]).toBe(
      `Refused by the egress guard: b.site.localhost:${port} is not allowed for this run; what is: a.site.localhost:${port}.`,
    )
    expect(outputs[1]).toContain('403')
    expect(outputs[2]).toMatch(/127\.0\.0\.1:\d+ is not allowed for this run.*169\.254\.169\.254:80 is not allowed/s)
    expect(outputs[3]).toContain('ConnectionRefusedError')
    expect(outputs[4]).toContain('gaierror')
    expect(asked.filter((line) => !/ a\.site/.test(line))).toEqual([])
    const refused = { kind: 'sandbox', outcome: 'refused' }
    expect(await auditOf(server, body.interactionId)).toEqual([
      { ...refused, host: 'b.site.localhost', port, count: 2 },
      { ...refused, host: '127.0.0.1', port, count: 1 },
      { ...refused, host: '169.254.169.254', port: 80, count: 1 },
    ])
    const { messages, tools } = provider.requests.at(-1)!.body
    expect(JSON.stringify(messages[0])).toContain(`These hosts can be reached by HTTP and HTTPS`)
    expect(JSON.stringify(tools)).toContain(`a.site.localhost:${port}`)
  })

  it('has a limit on its total bytes', async () => {
    const url = `http://a.site.localhost:${port}/`
    const { outputs } = await run(
      [
        bash(`${CLEAR} head -c 3000000 /dev/zero | curl -sS --data-binary @- -H 'Expect:' ${url} 2>&1 | tail -c 100`),
        bash(`${CLEAR} curl -sS ${url}`),
      ],
      allow(),
    )
    expect(outputs[1]).toContain('has used the 2,000,000 bytes of its network')
  })
})

describe('a run without a network', () => {
  it('has no proxy, and its model is informed that there is no network', async () => {
    const { outputs } = await run([bash(`env | grep -ic proxy; curl -sS http://127.0.0.1:3128/ 2>&1 | tail -1`)])
    expect(outputs[0]).toMatch(/^0\n.*Failed to connect/)
    expect(JSON.stringify(provider.requests.at(-1)!.body.messages[0])).toContain('There is no network.')
  })
})

describe('the operator’s network setting', () => {
  it('limits requests and agents, and a refusal lists the allowed hosts', async () => {
    for (const network of ['public', { allow: ['example.com'] }]) {
      for (const path of [PATH, '/v1beta/agents']) {
        const error = errorOf(await server.post(path, { instruction: 'x', network }))
        expect(error).toMatchObject({ status: 400, code: 'invalid_request', param: 'network' })
        expect(error.message).toContain('api.example.com')
      }
    }
  })

  it('applies to a stored agent, whose list is stored in normalized form', async () => {
    const agent = await server.post('/v1beta/agents', { network: { allow: ['API.example.com.'] } })
    expect(agent.body.network).toEqual({ allow: ['api.example.com'] })
    const { body } = await run([javascript('1')], { agentId: agent.body.id })
    expect(body.resolved.network).toEqual({ allow: ['api.example.com'] })
  })
})

/** Returns the hosts of all audit entries, read page by page. */
async function hostsOf(id: string, pageSize: number): Promise<string[]> {
  const hosts: string[] = []
  for (let token = ''; ; ) {
    const { status, body } = await server.get(`${PATH}/${id}/audit?pageSize=${pageSize}${token}`)
    expect(status).toBe(200)
    expect(body.entries.length).toBeLessThanOrEqual(pageSize)
    hosts.push(...body.entries.map(({ host }: { host: string }) => host))
    if (!body.nextPageToken) return hosts
    token = `&pageToken=${body.nextPageToken}`
  }
}

describe('the audit', () => {
  it('has a maximum size: when it is full, connections to new hosts are refused', async () => {
    const { body, outputs } = await run(
      [
        bash(`${CLEAR} curl -sS http://a.site.localhost:${port}/known`),
        python(`import socket
def ask(host):
    with socket.create_connection(('127.0.0.1', 3128)) as proxy:
        proxy.sendall(f'GET http://{host}/ HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n'.encode())
        said = b''
        while part := proxy.recv(65536): said += part
        return said.decode()
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(16) as pool: list(pool.map(ask, (f'h{i}.example' for i in range(2100))))
print(ask('one-more.example'))`),
        bash(`${CLEAR} curl -sS http://a.site.localhost:${port}/known`),
      ],
      allow(),
    )
    expect(outputs[1]).toContain('has connected to too many hosts')
    expect(outputs[2]).toBe('served /known')
    const hosts = await hostsOf(body.interactionId, 100)
    expect(hosts).toHaveLength(2001)
    expect(hosts.filter((host) => host === '*')).toEqual(['*'])
  })

  it('is paged, and returns 404 for another project', async () => {
    const hosts = Array.from({ length: 5 }, (_, i) => `h${i}.example`)
    const { body } = await run([bash(hosts.map((host) => `curl -s http://${host}/`).join(';'))], allow())
    const path = `${PATH}/${body.interactionId}/audit`
    expect(await hostsOf(body.interactionId, 2)).toEqual(hosts)
    const other = { 'x-svc-api-key': await server.createKey('other') }
    const [theirs, nobody] = [await server.get(path, other), await server.get(`${PATH}/int_none/audit`, other)]
    expect(theirs.status).toBe(404)
    expect(theirs.text.replaceAll(body.interactionId, 'ID').replace(/req_\w+/, '')).toBe(
      nobody.text.replaceAll('int_none', 'ID').replace(/req_\w+/, ''),
    )
  })
})
