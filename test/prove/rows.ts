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
  /** Limits of the proof: cases that the tests do not cover. */
  readonly gap?: string
}

export const ROWS: readonly Row[] = [
  {
    id: 'R1',
    fault: 'kill -9 of the worker at a random moment or a named crash point',
    pass: 'no run is lost, failed or stuck, and answers are exact; each run ends within the lease + 15 s; no finished tool call runs twice; failed calls that were billed are counted, and the number of repeated calls is bounded',
    tests: ['test/contract/model-fallback.test.ts'],
  },
  {
    id: 'R2',
    fault: 'kill -9 of the server while it accepts requests',
    pass: 'no acknowledged interaction is missing',
  },
  {
    id: 'R3',
    fault: 'a worker is stopped (SIGSTOP) until its lease has expired, then continued',
    pass: 'no stale write; the old worker stops its runs within 1 s',
  },
  {
    id: 'R4',
    fault: 'Postgres is killed repeatedly under load',
    pass: 'no interaction is lost or duplicated; refused callers get 503 with Retry-After; recovery within 5 s; a node that is stopped during an outage exits with 0',
    tests: ['test/nodes/database-away.test.ts'],
  },
  {
    id: 'R5',
    fault: 'the connection to Postgres is cut around a COMMIT',
    pass: 'no event is lost or stored twice',
  },
  {
    id: 'R6',
    fault: 'no free space, or no free inodes, on the disk of the database, the files or the sandboxes',
    pass: 'a 503, or the run fails; once there is space, everything works again',
    gap: 'a sandbox host that runs as root has its scratch directory in /run, which is not filled; S4 covers a sandbox’s own disk',
  },
  {
    id: 'R7',
    fault: 'a worker’s wall clock is an hour ahead or behind',
    pass: 'no worker takes over another’s run; deadlines are accurate to 1 s',
    gap: 'on SQLite the database uses the machine’s clock: if it is set back, the runs of a killed server wait longer',
  },
  {
    id: 'R8',
    fault: 'repeated restarts by SIGTERM, under 20 streams, with answers that outlast the drain',
    pass: 'no run fails; streams resume exactly where they were cut off; each exit within 30 s',
  },
  {
    id: 'R9',
    fault: 'an interaction that kills each worker that claims it',
    pass: 'it fails after at most 3 claims; other interactions are not affected',
  },
  {
    id: 'R10',
    fault: 'a run is canceled at a random point',
    pass: 'it ends within 1 s; no process is left when the 200 arrives; a second request changes nothing',
  },
  {
    id: 'R11',
    fault:
      'maxTurnDuration against a process tree that ignores SIGTERM; other limits that a run reaches while it works',
    pass: 'the run ends within the limit + 2 s, and no process is left; a run that reaches a limit while it works ends with an answer',
    tests: ['test/contract/agent-loop.test.ts'],
  },
  {
    id: 'R12',
    fault: 'kill -9 of the server and its sandbox host, with sandboxes open, warm and being created',
    pass: 'no sandbox, directory, mount or control group is left 30 s after the restart',
    tests: ['test/sandbox/left-behind.test.ts'],
  },
  {
    id: 'R13',
    fault:
      'faults of a model’s provider: 429, 5xx, connection reset, stall, half-open connection, truncated stream, split characters, error events',
    pass: 'at most 3 attempts before the answer begins and 6 after, with jitter; Retry-After is obeyed; the idle timeout ends a silent connection; no run hangs',
  },
  {
    id: 'R14',
    fault: 'the model’s stream breaks after fragments were sent',
    pass: 'the answer continues where it stopped and is complete; no text is shown twice',
    tests: ['test/contract/interactions-failures.test.ts'],
  },
  {
    id: 'R15',
    fault: 'a stream is resumed at every event: during the run, after it, and after a restart',
    pass: 'no event is missing, and none is sent twice',
  },
  {
    id: 'R16',
    fault: '50 clients that never read, 24 MB for each; then clients that never read on every route',
    pass: 'memory grows by at most 64 MB, on every route by at most 192 MB; the clients are disconnected within 30 s; runs and other projects are not affected',
  },
  {
    id: 'R17',
    fault: '2,000 connections that send a byte from time to time',
    pass: 'the p99 of a normal client is at most twice its p99 without them',
  },
  {
    id: 'R18',
    fault: '100 concurrent POSTs with one Idempotency-Key',
    pass: 'one interaction, also after kill -9; a different body gets 422; after a retryable failure, one new run',
  },
  {
    id: 'R19',
    fault: '20,000 interactions, one after the other',
    pass: 'memory, handles, connections and sandboxes do not grow',
    gap: 'the server had the heap limit for V8 that docs/operating.md names; without it, memory was 274 to 276 MB at the end, and grew by 18 to 30 MB from the first half to the second, where 16 are allowed',
  },
  {
    id: 'R20',
    fault: 'random faults, by seed, of the engine on a simulated clock and database',
    pass: 'no seed violates an invariant',
  },
  {
    id: 'R21',
    fault:
      'random faults at the same time: kill -9 of servers and sandbox hosts, cancellations, dropped streams, repeated requests',
    pass: 'no interaction is lost, duplicated or stuck; no process is left behind',
  },
  {
    id: 'S1',
    fault: 'requests to forbidden addresses, in every spelling, by redirect and by name, on every outbound route',
    pass: 'no forbidden address is reached',
    tests: [
      'test/egress/ssrf.test.ts',
      'test/egress/fetch.test.ts',
      'test/egress/proxy.test.ts',
      'test/contract/ssrf.test.ts',
      'test/browser/hostile.test.ts',
      'test/browser/network.test.ts',
    ],
    gap: 'a name that changes its address (DNS rebinding) is tested at the egress guard, not through Chromium',
  },
  {
    id: 'S2',
    fault: 'network access from a sandbox: TCP, UDP, DNS, ICMP, IPv6, the host’s loopback, abstract sockets',
    pass: 'no packet leaves the sandbox',
    tests: [
      'test/sandbox/network.test.ts',
      'test/sandbox/bubblewrap/network.test.ts',
      'test/contract/tools-isolation.test.ts',
    ],
  },
  {
    id: 'S3',
    fault: 'sandbox escapes: mounts, ptrace, namespaces, /proc and /sys, setuid, devices, bpf, io_uring, files',
    pass: 'none succeeds; no capabilities, no new privileges, seccomp enabled',
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
    fault: 'resource exhaustion in a sandbox: fork bombs, memory, disk, inodes, descriptors, endless output',
    pass: 'each is stopped and reported to the model by its cause; other sandboxes are not affected',
    tests: [
      'test/sandbox/bombs.test.ts',
      'test/sandbox/bubblewrap/cgroups.test.ts',
      'test/contract/tools-limits.test.ts',
    ],
    script: 'script/prove-cgroup-v2',
    gap: 'the p99 of a neighboring sandbox is measured by bench/neighbor.ts without a limit, because it depends on the machine',
  },
  {
    id: 'S5',
    fault: 'hostile file names: `..`, links, FIFOs, devices, NUL, races; 500 random names',
    pass: 'no byte of a canary file is read; nothing hangs',
    tests: ['test/sandbox/names.test.ts', 'test/sandbox/files.test.ts'],
  },
  {
    id: 'S6',
    fault: 'gzip bombs, endless downloads and very slow downloads',
    pass: 'stopped at the limit; memory grows by at most 100 MB',
    tests: ['test/egress/memory.test.ts'],
  },
  {
    id: 'S7',
    fault: 'every route with another project’s key, a revoked key, an expired key, and no key',
    pass: '401 or 404, with the same body as for a resource that does not exist',
    tests: ['test/contract/auth.test.ts', 'test/contract/credentials.test.ts', 'test/http/order-of-checks.test.ts'],
  },
  {
    id: 'S8',
    fault: 'keys: searched for in the database and the log, mistyped, and used after revocation',
    pass: 'never stored in plain text; a mistyped key is refused without a database query; a revoked key is refused within 1 s',
    tests: ['test/contract/auth.test.ts'],
  },
  {
    id: 'S9',
    fault: 'planted secrets, with a model under an attacker’s control',
    pass: 'no secret appears in a sandbox, a trace, a log or an error',
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
      'hostile bodies: a million levels deep, 200,000 keys, `__proto__`, invalid UTF-8, two lengths, a wrong type, a gigabyte without a key',
    pass: '4xx within 50 ms and never a 5xx; almost nothing is read before the key is checked',
    tests: ['test/http/bodies.test.ts'],
  },
  {
    id: 'S11',
    fault: 'a fuzzer that reads the OpenAPI document: every route, and sequences of calls',
    pass: 'no undocumented response, and no 5xx',
  },
  {
    id: 'S12',
    fault: 'forged events in a model’s text and a tool’s output; 10,000 random texts',
    pass: 'a reader parses exactly the events that were sent',
  },
  {
    id: 'S13',
    fault: 'three times as many calls as the rate limit',
    pass: 'the limit ± 1 is admitted, over all nodes; after Retry-After at least 99.9 % succeed',
    tests: ['test/http/rate-limits.test.ts'],
  },
  {
    id: 'S14',
    fault: 'signed URLs with flipped bits, expired, or of another project; hostile SVG and HTML files',
    pass: 'refused; no script runs in the console’s origin',
    tests: ['test/http/signed-urls.test.ts', 'test/console/playground.test.ts'],
  },
  {
    id: 'S15',
    fault: 'a hostile MCP server: endless responses, 100 MB, redirects to another origin, 10,000 tools',
    pass: 'resources stay bounded; the token is sent to no other origin',
    tests: ['test/mcp/hostile.test.ts'],
  },
  {
    id: 'S18',
    fault:
      'texts, schemas, zips and pages that make careless code slow, by seed: in every field, tool argument, result, upload, file by URL, web page, model response and MCP response',
    pass: 'nothing blocks the event loop of the server or the sandbox host for more than 50 ms of processor time',
    tests: ['test/event-loops', 'test/engine/search.test.ts', 'test/engine/schema-checks.test.ts'],
    gap: 'texts have at most 200,000 characters; docs/event-loop.md lists the times for larger inputs',
  },
  {
    id: 'S19',
    fault:
      'a sandbox under an attacker’s control exhausts every kernel resource: sockets, aio, terminals, inotify, locks, signals, timers, pipes, epoll, memory files, System V, keys, names, page cache',
    pass: 'it uses no more than its share of any machine-wide resource; the neighboring sandbox and the host keep theirs; it sees no event, lock or counter of a neighbor',
    tests: [
      'test/sandbox/shared-kernel.test.ts',
      'test/sandbox/bubblewrap/seccomp.test.ts',
      'test/sandbox/docker/seccomp.test.ts',
    ],
    gap: 'with Docker’s default runtime, sandboxes share the quotas of one user (inotify instances, queued signals); record locks and timing are visible on any shared kernel; Kubernetes has no driver yet',
  },
]

/** Paths of the row's test files, its own first. Empty if it is not proved. */
export function testsOf({ id, tests = [] }: Row): readonly string[] {
  const prefix = `${id[0]!.toLowerCase()}${id.slice(1).padStart(2, '0')}-`
  const own = readdirSync(import.meta.dirname).filter((name) => name.startsWith(prefix) && name.endsWith('.test.ts'))
  return [...own.map((name) => `test/prove/${name}`), ...tests]
}
