/**
 * The table of the proof. Each row is a fault or an attack, the required result, and the tests that prove it.
 * `script/prove` runs the full forms and writes docs/proof.md; every run of the test suite runs the short forms.
 *
 * A row's own tests are the files with its name (`r01-….test.ts`); the table lists further tests. A row without tests
 * is reported as not proved.
 */
import { readdirSync } from 'node:fs'

export interface Row {
  /** `R…` is a row about reliability, `S…` one about security. */
  readonly id: string
  readonly fault: string
  readonly pass: string
  /** Further test files and directories of the repository. */
  readonly tests?: readonly string[]
  /** A script of the repository that must succeed for the row. */
  readonly script?: string
  /** What the tests do not prove. */
  readonly gap?: string
}

export const ROWS: readonly Row[] = [
  {
    id: 'R1',
    fault: 'kill -9 of the worker at a random or a named point',
    pass:
      'nothing lost, failed or stuck, answers exact; each run ends within lease + 15 s; no finished tool call runs twice; ' +
      'billed calls that failed are counted, and a takeover makes no endless calls',
    tests: ['test/contract/model-fallback.test.ts'],
  },
  {
    id: 'R2',
    fault: 'kill -9 of the API around accepting',
    pass: 'no acknowledged interaction is missing',
  },
  {
    id: 'R3',
    fault: 'a worker stopped (SIGSTOP) past its lease, then let go on',
    pass: 'no stale write; the old worker stops within 1 s',
  },
  {
    id: 'R4',
    fault: 'Postgres killed again and again under load',
    pass: 'nothing lost or doubled; 503 with Retry-After meanwhile; recovered within 5 s; a node stopped meanwhile exits with 0',
    tests: ['test/nodes/database-away.test.ts'],
  },
  {
    id: 'R5',
    fault: 'the connection to Postgres cut after COMMIT was sent',
    pass: 'no event twice',
  },
  {
    id: 'R6',
    fault: 'no space, or no inodes, under the database, the files, the sandboxes',
    pass: 'a clean 503, or the run fails; once there is space, all goes on',
    gap: 'the scratch of a sandbox host that is root lies in /run, which is not filled; a sandbox’s own disk is S4’s',
  },
  {
    id: 'R7',
    fault: 'a worker’s wall clock an hour ahead or behind',
    pass: 'no lease stolen; deadlines right within 1 s',
    gap: 'on SQLite the database’s clock is the machine’s own: set back, it keeps the runs of a killed server waiting',
  },
  {
    id: 'R8',
    fault: 'restart after restart by SIGTERM, under 20 streams, with answers that outlast the drain',
    pass: 'no run fails; streams go on exactly where they were; each exit within 30 s',
  },
  {
    id: 'R9',
    fault: 'an interaction that kills each worker that takes it',
    pass: 'failed after at most 3 claims; its neighbours unaffected',
  },
  {
    id: 'R10',
    fault: 'cancelled at a random point',
    pass: 'ended within 1 s; no process left when 200 arrives; again is the same',
  },
  {
    id: 'R11',
    fault:
      'maxTurnDuration against a tree of processes that ignores SIGTERM; other limits that a run reaches while it works',
    pass: 'ends within the limit + 2 s, no process left; a run that worked ends with an answer',
    tests: ['test/contract/agent-loop.test.ts'],
  },
  {
    id: 'R12',
    fault: 'kill -9 of everything, with sandboxes open, warm and being made',
    pass: 'no sandbox, directory, mount or control group left 30 s after the restart',
    tests: ['test/sandbox/left-behind.test.ts'],
  },
  {
    id: 'R13',
    fault: 'a model’s provider: 429, 5xx, reset, stall, half open, cut short, characters split, error events',
    pass: 'at most 3 tries, spread, Retry-After obeyed, the idle timeout ends a silence; nothing hangs',
  },
  {
    id: 'R14',
    fault: 'the model’s stream dies after fragments were sent',
    pass: 'the answer continues where it stopped and is whole; no text is shown twice',
    tests: ['test/contract/interactions-failures.test.ts'],
  },
  {
    id: 'R15',
    fault: 'coming back to a stream at every event: live, finished, after a restart',
    pass: 'no event missing, none twice',
  },
  {
    id: 'R16',
    fault: '50 clients that never read, 24 MB for each; then clients that never read on every route',
    pass: 'memory grows by at most 64 MB, on every route by at most 192 MB; they are dropped within 30 s; runs and other projects unaffected',
  },
  {
    id: 'R17',
    fault: '2,000 connections that send a byte now and then',
    pass: 'a good client’s p99 is at most twice what it was',
  },
  {
    id: 'R18',
    fault: '100 POSTs at once with one Idempotency-Key',
    pass: 'one interaction; another body is 422; survives kill -9; after a retryable failure, one new run',
  },
  {
    id: 'R19',
    fault: '20,000 interactions, one after the other',
    pass: 'memory does not climb; handles, connections and sandboxes stay level',
    gap: 'the server had the bound for V8 that docs/operating.md names; without it 274 to 276 MB at the end, and 18 to 30 MB from the first half to the second, where 16 are allowed',
  },
  {
    id: 'R20',
    fault: 'the engine on a fake clock and store, faults by seed',
    pass: 'in no seed is an invariant violated',
  },
  {
    id: 'R21',
    fault: 'all at once, by chance: kill -9 of servers and sandbox hosts, cancels, dropped streams, repeated requests',
    pass: 'nothing lost, doubled, stuck or left behind',
  },
  {
    id: 'S1',
    fault: 'addresses that must not be reached, in every spelling, by redirect and by name, at every way out',
    pass: 'no canary is hit',
    tests: [
      'test/egress/ssrf.test.ts',
      'test/egress/fetch.test.ts',
      'test/egress/proxy.test.ts',
      'test/contract/ssrf.test.ts',
      'test/browser/hostile.test.ts',
      'test/browser/network.test.ts',
    ],
    gap: 'a name that changes its address is shown at the guard, not through Chromium',
  },
  {
    id: 'S2',
    fault: 'a sandbox that wants out: TCP, UDP, names, ICMP, IPv6, the host’s loopback, abstract sockets',
    pass: 'no packet leaves',
    tests: [
      'test/sandbox/network.test.ts',
      'test/sandbox/bubblewrap/network.test.ts',
      'test/contract/tools-isolation.test.ts',
    ],
  },
  {
    id: 'S3',
    fault: 'ways out of a sandbox: mounts, ptrace, namespaces, /proc and /sys, setuid, devices, bpf, io_uring, files',
    pass: 'none succeeds; no capabilities, no new privileges, seccomp on',
    tests: [
      'test/sandbox/escape.test.ts',
      'test/sandbox/isolation.test.ts',
      'test/sandbox/mounts.test.ts',
      'test/sandbox/bubblewrap/seccomp.test.ts',
      'test/sandbox/bubblewrap/fork-server.test.ts',
      'test/sandbox/bubblewrap/preloaded.test.ts',
      'test/sandbox/docker/seccomp.test.ts',
    ],
  },
  {
    id: 'S4',
    fault: 'bombs: forks, memory, disk, inodes, descriptors, output without end',
    pass: 'each is stopped, told to the model as what it was, and its neighbours go on',
    tests: [
      'test/sandbox/bombs.test.ts',
      'test/sandbox/bubblewrap/cgroups.test.ts',
      'test/contract/tools-limits.test.ts',
    ],
    script: 'script/prove-cgroup-v2',
    gap: 'a neighbour’s p99 is measured by bench/neighbor.ts and not judged: it depends on the machine',
  },
  {
    id: 'S5',
    fault: 'names: `..`, links, FIFOs, devices, NUL, races; 500 made by chance',
    pass: 'no byte of a canary, nothing hangs',
    tests: ['test/sandbox/names.test.ts', 'test/sandbox/files.test.ts'],
  },
  {
    id: 'S6',
    fault: 'gzip bombs, downloads without end or in drips',
    pass: 'stopped at the cap; memory grows by at most 100 MB',
    tests: ['test/egress/memory.test.ts'],
  },
  {
    id: 'S7',
    fault: 'every route with another project’s, a revoked, an expired, no key',
    pass: '401 or 404, with the body of a thing that does not exist',
    tests: ['test/contract/auth.test.ts', 'test/contract/credentials.test.ts', 'test/http/order-of-checks.test.ts'],
  },
  {
    id: 'S8',
    fault: 'keys: looked for in the database and the log, with typos, after they were revoked',
    pass: 'never in plain text; a typo is refused without the database; a revoked key is dead within 1 s',
    tests: ['test/contract/auth.test.ts'],
  },
  {
    id: 'S9',
    fault: 'planted secrets, with a hijacked model in the loop',
    pass: 'none in a sandbox, a trace, a log, an error',
    tests: [
      'test/mcp/secrets.test.ts',
      'test/mcp/sign-in.test.ts',
      'test/accounts/secrets.test.ts',
      'test/contract/network-credentials.test.ts',
    ],
  },
  {
    id: 'S10',
    fault:
      'bodies: a million deep, 200,000 keys, `__proto__`, bad UTF-8, two lengths, a wrong type, a gigabyte without a key',
    pass: '4xx within 50 ms, next to nothing read before the key is judged, no 5xx',
    tests: ['test/http/bodies.test.ts'],
  },
  {
    id: 'S11',
    fault: 'a fuzzer that reads the OpenAPI document: every route, and one after another',
    pass: 'no answer that is not documented, no 5xx',
  },
  {
    id: 'S12',
    fault: 'events forged in a model’s text and a tool’s output; 10,000 made by chance',
    pass: 'what is parsed is what was sent',
  },
  {
    id: 'S13',
    fault: 'three times the rate limit',
    pass: 'admitted: the limit ± 1, over all nodes; after Retry-After at least 99.9 % succeed',
    tests: ['test/http/rate-limits.test.ts'],
  },
  {
    id: 'S14',
    fault: 'signed addresses with flipped bits, expired, of another project; hostile SVG and HTML files',
    pass: 'refused; no script runs in the console’s origin',
    tests: ['test/http/signed-urls.test.ts', 'test/console/playground.test.ts'],
  },
  {
    id: 'S15',
    fault: 'a hostile MCP server: without end, 100 MB, redirects to another origin, 10,000 tools',
    pass: 'bounded; the token goes to no other origin',
    tests: ['test/mcp/hostile.test.ts'],
  },
  {
    id: 'S18',
    fault:
      'texts, schemas, zips and pages that make careless code slow: in every field, tool argument, result, upload, file by URL, web page and wire, by seed',
    pass: 'no turn of the server’s event loop, and nothing of the sandbox host, takes over 50 ms of processor time',
    tests: ['test/event-loops', 'test/engine/search.test.ts', 'test/engine/schema-checks.test.ts'],
    gap: 'texts have at most 200,000 characters; docs/event-loop.md lists what larger inputs take',
  },
  {
    id: 'S19',
    fault:
      'a hijacked sandbox takes every kernel resource: sockets, aio, terminals, inotify, locks, signals, timers, pipes, epoll, memory files, System V, keys, names, page cache',
    pass: 'nothing that counts for the whole machine moves by more than its share; the neighbor and the host have theirs; no event, lock or counter of a neighbor is seen',
    tests: [
      'test/sandbox/shared-kernel.test.ts',
      'test/sandbox/bubblewrap/seccomp.test.ts',
      'test/sandbox/docker/seccomp.test.ts',
    ],
    gap: 'on Docker’s usual runtime sandboxes share the quotas of one user (inotify instances, queued signals); record locks and timing remain on any shared kernel; Kubernetes has no driver yet',
  },
]

/** Paths of the row's test files, its own first. Empty if it is not proved. */
export function testsOf({ id, tests = [] }: Row): readonly string[] {
  const prefix = `${id[0]!.toLowerCase()}${id.slice(1).padStart(2, '0')}-`
  const own = readdirSync(import.meta.dirname).filter((name) => name.startsWith(prefix) && name.endsWith('.test.ts'))
  return [...own.map((name) => `test/prove/${name}`), ...tests]
}
